"""Serves a sentence-transformers BERT model, such as all-MiniLM-L6-v2, under OpenAI's `/v1/embeddings`; not a test.

For measuring with a real embedding model on a CPU. The model is a folder in Hugging Face form, read without network;
its sentence vector is the mean of the token vectors, as its card says. Needs torch, transformers and aiohttp.

    python tests/retrieval/corpus/serve_minilm.py FOLDER --port 8000
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any

from aiohttp import web

MODEL = "all-MiniLM-L6-v2"


class Encoder:
    def __init__(self, folder: str, longest: int, threads: int) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        from transformers import AutoModel, AutoTokenizer

        # On a busy machine threads wait for each other: one is faster than two there.
        torch.set_num_threads(threads)
        self.torch = torch
        self.longest = longest
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).float().eval()

    def encode(self, texts: list[str]) -> list[list[float]]:
        vectors: dict[int, list[float]] = {}
        # Texts of like length together, so that little is spent on padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), 16):
            part = order[start : start + 16]
            batch = self.tokenizer(
                [texts[i] for i in part], padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
            )
            with self.torch.inference_mode():
                states = self.model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).float()
            means = (states * mask).sum(1) / mask.sum(1)
            vectors.update(zip(part, means.tolist(), strict=True))
        return [vectors[i] for i in range(len(texts))]


def make_application(encoder: Encoder) -> web.Application:
    busy = asyncio.Lock()

    async def embed(request: web.Request) -> web.Response:
        asked: dict[str, Any] = await request.json()
        if asked.get("model") != MODEL:
            return web.json_response(
                {"error": {"message": f"The model {asked.get('model')!r} does not exist."}}, status=404
            )
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        async with busy:
            vectors = await asyncio.to_thread(encoder.encode, texts)
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return web.json_response({"object": "list", "model": MODEL, "data": data})

    application = web.Application(client_max_size=100_000_000)
    application.router.add_post("/v1/embeddings", embed)
    return application


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--longest", type=int, default=256, help="tokens; longer texts are cut")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    encoder = Encoder(options.folder, options.longest, options.threads)
    web.run_app(make_application(encoder), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
