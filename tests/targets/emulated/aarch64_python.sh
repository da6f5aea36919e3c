#!/bin/sh
# Put a Python for aarch64 with what Axode needs into a folder, and a script `python` that runs it under QEMU.
# On Debian 12 and later, with qemu-user and the architecture arm64 (dpkg --add-architecture arm64; apt update).
set -eu
folder=${1:?folder}
mkdir -p "$folder/debs" "$folder/wheels" "$folder/root" "$folder/site"
folder=$(cd "$folder" && pwd)
(
  cd "$folder/debs"
  for package in python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 \
    gcc-12-base zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libgomp1; do
    apt-get download -qq "$package:arm64"
  done
  for archive in *.deb; do dpkg-deb -x "$archive" "$folder/root"; done
)
python3 -m pip download -qq --dest "$folder/wheels" --only-binary :all: --python-version 3.11 \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
  --platform manylinux2014_aarch64 \
  numpy scipy casadi llvmlite rich typer pydantic tomli-w pytest hypothesis mpmath packaging
for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/site"; done
cat > "$folder/python" <<EOF
#!/bin/sh
PYTHONPATH=\$PYTHONPATH:$folder/site exec qemu-aarch64 -L $folder/root $folder/root/usr/bin/python3.11 "\$@"
EOF
chmod +x "$folder/python"
# Tests that start Python start the script: the system cannot run its interpreter by itself.
printf 'import sys\nsys.executable = "%s"\n' "$folder/python" > "$folder/site/sitecustomize.py"
PYTHONPATH= "$folder/python" -c "import platform; print('Python', platform.python_version(), platform.machine())"
