#pragma once
#include <optional>
#include <string>

#include "answer/answer.h"
#include "run/loop.h"
#include "search/model/best.h"

namespace krigtune::report {

/// The input of all result files: the present state of a run directory, and what follows from it. `session` and
/// `history` must outlive it.
struct RunView {
  /// `facts`: the answer for this history.
  RunView(const session::Session& of, const search::History& trials, std::string its_name, run::LoopOptions loop,
          std::filesystem::path its_directory, std::filesystem::path its_bench, answer::Answer facts)
      : session(of),
        history(trials),
        name(std::move(its_name)),
        options(std::move(loop)),
        directory(std::move(its_directory)),
        bench(std::move(its_bench)),
        answer(std::move(facts)) {}
  /// `best`: the recommendation for this history.
  RunView(const session::Session& of, const search::History& trials, std::string its_name, run::LoopOptions loop,
          std::filesystem::path its_directory, std::filesystem::path its_bench,
          const std::optional<search::Recommendation>& best)
      : RunView(of, trials, std::move(its_name), std::move(loop), std::move(its_directory), std::move(its_bench),
                answer::answer_of(of, trials, best)) {}

  const session::Session& session;
  const search::History& history;
  std::string name;  ///< name of the session, for people
  run::LoopOptions options;
  std::filesystem::path directory;
  std::filesystem::path bench;  ///< krigtune-bench, as commands should refer to it
  answer::Answer answer;
};

}  // namespace krigtune::report
