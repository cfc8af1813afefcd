"""`unlinkabledfl containers`: make the image that nodes in containers need, and take away what is left of a run."""

import argparse

from unlinkabledfl.cli.output import print_document, show


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("containers", help="make the image for nodes in containers; take leftovers away")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shared = argparse.ArgumentParser(add_help=False, parents=[common])
    shared.add_argument(
        "--engine",
        default="",
        metavar="ADDRESS",
        help="where the engine listens (default: $DOCKER_HOST, else Docker's own socket)",
    )
    build = actions.add_parser("build", parents=[shared], help="make the image; the engine needs a registry for it")
    build.add_argument(
        "--root",
        choices=("image", "host"),
        default="image",
        help="host: an empty one, into which this host's programs are mounted; it needs no registry",
    )
    build.add_argument("--name", metavar="NAME:TAG", help="what to call it (default: where `run` looks for it)")
    build.add_argument("--base", metavar="IMAGE", help="what to build on (default: python:3.13-slim)")
    build.add_argument("--extras", default="learning", metavar="LIST", help="of the package (default: learning)")
    build.set_defaults(handle=handle_build)
    clean = actions.add_parser("clean", parents=[shared], help="remove what launchers that were killed have left")
    clean.add_argument("--all", action="store_true", help="also what belongs to runs that go on, or to other hosts")
    clean.set_defaults(handle=handle_clean)


def handle_build(arguments: argparse.Namespace) -> None:
    """Make the image and say what it is called."""
    from unlinkabledfl.experiment.backends.container.blueprint import default_image
    from unlinkabledfl.experiment.backends.container.engine import Engine
    from unlinkabledfl.experiment.backends.container.images import build_image, import_host_root

    name = arguments.name or default_image(arguments.root)
    engine = Engine.connect(arguments.engine)
    if arguments.root == "host":
        import_host_root(engine, name)
    else:
        for line in build_image(engine, name, base=arguments.base, extras=arguments.extras):
            if not arguments.json:
                show(line)
    if arguments.json:
        print_document({"image": name, "root": arguments.root})
    else:
        show(f"made {name}: `unlinkabledfl run demo --backend container --set container.root={arguments.root}`")


def handle_clean(arguments: argparse.Namespace) -> None:
    """Take away what is left over, and say what that was."""
    from unlinkabledfl.experiment.backends.container.engine import Engine
    from unlinkabledfl.experiment.backends.container.leftovers import remove_leftovers

    removed = remove_leftovers(Engine.connect(arguments.engine), everything=arguments.all)
    if arguments.json:
        print_document({"removed": removed})
    else:
        show("".join(f"removed {name}\n" for name in removed) + f"{len(removed)} removed")
