"""Tunes the function of your program: Bayesian optimization in a few lines.

    import krigtune

    def loss(configuration):                                  # {"lr": 0.003, "batch": 16}
        return train(**configuration)

    study = krigtune.minimize(loss, {"lr": krigtune.log(1e-5, 1e-2), "batch": [8, 16, 32]}, trials=30)
    print(study.best)

`Study` has the same with `ask` and `tell`, for programs that run the trials themselves. A study is a run directory: the commands
of the program krigtune (`krigtune results DIR`, `krigtune report DIR`) and the C++ library read it too, also while it grows. This
package has no dependencies; it starts the program, which it brings along, and speaks to it over a pipe (`krigtune serve`).
"""
from ._server import Error, InputError, ProgramError, program
from ._space import Parameter, integer, log, real
from ._steps import StepReporter
from ._study import Best, Study, Trial, maximize, minimize, plan

__version__ = "0.1.0"
__all__ = ["Best", "Error", "InputError", "Parameter", "ProgramError", "StepReporter", "Study", "Trial", "integer", "log",
           "maximize", "minimize", "plan", "program", "real"]
