"""Lossless coding of symbols: the Huffman stage of Zstandard, with next to no search for repetitions.

Quantized weights hardly repeat, so a search costs three times the coding and makes the result longer
(docs/decisions/0004-entropy-coding.md).

Invariant: decompressing allocates exactly the bytes that the receiver expects, whatever the frame claims.
"""

import zstandard

from unlinkabledfl.errors import FragmentError

_FORMAT = zstandard.FORMAT_ZSTD1_MAGICLESS
_PARAMETERS = zstandard.ZstdCompressionParameters(
    format=_FORMAT,
    window_log=17,  # a block's length
    chain_log=6,
    hash_log=6,
    search_log=1,
    min_match=7,
    target_length=0,
    strategy=zstandard.STRATEGY_DFAST,
    write_content_size=True,
    write_checksum=False,
    write_dict_id=False,
)
FRAME_OVERHEAD = 24
"""Bytes that a frame of up to 64 KiB may exceed its content by, when nothing can be saved."""


class Lossless:
    """Compresses and decompresses. Making one costs more than using it, and no two threads may use the same."""

    __slots__ = ("_compressor", "_decompressor")

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(compression_params=_PARAMETERS)
        self._decompressor = zstandard.ZstdDecompressor(format=_FORMAT)

    def compress(self, data: bytes | memoryview) -> bytes:
        """Return the frame."""
        return self._compressor.compress(data)

    def decompress(self, frame: bytes, *, size: int) -> bytes:
        """Return the `size` bytes that the frame holds; FragmentError if it holds anything else."""
        try:
            # Looked at before anything is allocated: the library trusts the size that a frame claims.
            claimed = zstandard.get_frame_parameters(frame, format=_FORMAT).content_size
            if claimed != size:
                raise FragmentError("bad_size", f"the frame claims {claimed} bytes, the range needs {size}")
            data = self._decompressor.decompress(frame, max_output_size=size, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise FragmentError("bad_compression", str(error)) from error
        if len(data) != size:
            raise FragmentError("bad_size", f"{len(data)} bytes decompressed, {size} needed")
        return data
