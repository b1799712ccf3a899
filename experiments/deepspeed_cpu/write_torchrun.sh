#!/bin/sh
# write_torchrun.sh ENVIRONMENT writes ENVIRONMENT/bin/torchrun for a virtual
# environment that uses another one's torch. Like pip, it writes a program that
# works if the path of the interpreter has spaces: the shell reads lines 2 and
# 3, and to Python they are a string.
set -eu

cat >"$1/bin/torchrun" <<EOF
#!/bin/sh
'''exec' "$1/bin/python" "\$0" "\$@"
' '''
from torch.distributed.run import main
main()
EOF
chmod +x "$1/bin/torchrun"
