#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace krigtune::session {

// What a whole training takes beside its steps: the session's block "run", and the amount of data.

/// How much is trained: tokens or samples of one pass, and the passes.
struct Amount {
  std::optional<double> tokens;
  std::optional<double> samples;
  double epochs = 1.0;

  bool is_stated() const { return tokens || samples; }
  /// Requires that it is stated.
  double all_tokens(std::int64_t seq_len) const {
    return epochs * (tokens ? *tokens : *samples * static_cast<double>(seq_len));
  }
};

/// The session's block "run". By default nothing but steps takes time.
struct RunSpec {
  std::optional<double> checkpoint_s;        ///< training waits so long for one checkpoint; empty: none is written
  std::optional<double> checkpoint_every_s;  ///< training time between two; empty: as often as is best
  double failures_per_gpu_day = 0.0;
  double restart_s = 0.0;         ///< from a failure until steps go on
  double evaluation_share = 0.0;  ///< time of evaluations over the time of steps
  double data_wait_share = 0.0;   ///< time that steps wait for data over their time
  std::optional<double> power_w;  ///< mean power of a GPU with its share of the machine

  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

/// Reads the block. Throws UserError, also for failures without checkpoints.
RunSpec read_run(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer);
nlohmann::ordered_json to_json(const RunSpec& run);
nlohmann::ordered_json run_schema();

}  // namespace krigtune::session
