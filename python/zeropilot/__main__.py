"""``python -m zeropilot`` runs the command that is installed with this interpreter."""

import os
import sys
import sysconfig


def find_command() -> str:
    """Return the path of the command."""
    name = "zeropilot" + sysconfig.get_config_var("EXE")
    places = [sysconfig.get_path("scripts")]
    if sys.version_info >= (3, 10):
        user = sysconfig.get_preferred_scheme("user")
    else:
        user = "nt_user" if os.name == "nt" else "posix_user"
    places.append(sysconfig.get_path("scripts", scheme=user))
    for place in places:
        path = os.path.join(place, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(
        f"the command zeropilot was not found in {' or '.join(places)}; reinstall the wheel"
    )


if __name__ == "__main__":
    command = find_command()
    if os.name == "nt":
        import subprocess

        sys.exit(subprocess.run([command, *sys.argv[1:]]).returncode)
    os.execv(command, [command, *sys.argv[1:]])
