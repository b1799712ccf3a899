#include "runners.h"

#include "krigtune/tuner/goodput.h"

namespace krigtune {

std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop) {
  const RunnerJob job{session.workload, session.cluster,
                      session.memory,   session.space,
                      session.table,    session.objective.reported_field(),
                      console.program,  stop,
                      console.clock};
  return with_goodput(session, make_runner(session.runner, job));
}

}  // namespace krigtune
