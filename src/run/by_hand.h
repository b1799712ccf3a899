#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "run/loop.h"

namespace krigtune::run {

/// A run directory in which one program asks and tells many times:
///
///   HandRun run(session, candidates, directory, options, clock);
///   while (const auto trial = run.ask()) run.tell(trial->number, measure(trial->proposal.configuration));
///
/// It keeps the journal open and reads only what was appended since, and its strategy keeps what follows from the
/// closed trials. It proposes what ask_by_hand would. Other processes may ask, tell or tune in the directory at the
/// same time. For one thread at a time.
class HandRun {
 public:
  /// Creates the directory with its journal and session.json if it is new. The references must outlive the object.
  /// Throws UserError like run_session.
  HandRun(const session::Session& session, const search::Candidates& candidates, std::filesystem::path directory,
          const LoopOptions& options, const Clock& clock);
  ~HandRun();

  /// Returns the next trial, which is pending and in the journal; empty if nothing is left to propose.
  std::optional<journal::Trial> ask();
  /// Does what tell_by_hand does.
  journal::Trial tell(int trial, const trial::Outcome& outcome);
  /// Records a configuration that somebody else chose and measured, which took `wall_s` seconds.
  journal::Trial add(const space::Configuration& configuration, const trial::Outcome& outcome, double wall_s);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Proposes `count` trials without running them, and records them as pending in the directory's journal (created with
/// session.json if the directory is new). Other processes may ask, tell or tune there at the same time. Returns fewer
/// than `count`, or none, if nothing is left to propose. The budget does not apply, because whoever asks by hand
/// decides how often. `asked` is called with each trial as soon as it is in the journal, so its output stays true if
/// the process ends then. Throws UserError like run_session.
std::vector<journal::Trial> ask_by_hand(const session::Session& session, const search::Candidates& candidates,
                                        const std::filesystem::path& directory, const LoopOptions& options,
                                        const Clock& clock, int count,
                                        const std::function<void(const journal::Trial&)>& asked = {});

/// Closes a pending trial and returns it; its wall time counts from when it was asked. Throws UserError if there is no
/// such trial, if it is closed already (with its status), or if it belongs to a tune that is running.
journal::Trial tell_by_hand(const session::Session& session, const std::filesystem::path& directory, int trial,
                            const trial::Outcome& outcome, const Clock& clock);

}  // namespace krigtune::run
