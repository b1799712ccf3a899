#!/bin/sh
# write_torchrun.sh ENVIRONMENT: ENVIRONMENT/bin/torchrun for a virtual environment that sees another one's torch. As pip
# writes programs where the path of the interpreter may have spaces: the shell reads lines 2 and 3, Python a text.
set -eu

cat >"$1/bin/torchrun" <<EOF
#!/bin/sh
'''exec' "$1/bin/python" "\$0" "\$@"
' '''
from torch.distributed.run import main
main()
EOF
chmod +x "$1/bin/torchrun"
