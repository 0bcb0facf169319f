"""Makes small PDF files for tests."""

from __future__ import annotations

import zlib


def make_pdf(*pages: str, title: str = "") -> bytes:
    """Make a small PDF.

    Args:
        *pages: ASCII text of each page; line breaks begin a new line.
        title: Title in its metadata.

    Returns:
        The file.
    """
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        lines = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")]
        shown = " T* ".join(f"({line}) Tj" for line in lines)
        stream = zlib.compress(f"BT /F1 11 Tf 14 TL 40 780 Td {shown} ET".encode())
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>".encode()
        )
        head = f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + stream + b"\nendstream")
    objects.append(f"<< /Title ({title}) >>".encode())
    data, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>"
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n{trailer}\nstartxref\n{len(data)}\n%%EOF\n"
    return data + end.encode()
