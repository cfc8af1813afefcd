"""What the package promises to the outside, name by name. A change here is a change that users notice."""

from unlinkabledfl import errors


def test_the_errors_module_exports_exactly_the_tree() -> None:
    assert errors.__all__ == [
        "ConfigError",
        "ControlError",
        "DatasetError",
        "DescriptorError",
        "FragmentError",
        "LearnerError",
        "LocalProtocolError",
        "NoRouteError",
        "PacketError",
        "QueueFullError",
        "RemoteProtocolError",
        "RunError",
        "UnlinkableError",
    ]


def test_every_exported_name_of_the_errors_module_exists() -> None:
    assert [name for name in errors.__all__ if not hasattr(errors, name)] == []
