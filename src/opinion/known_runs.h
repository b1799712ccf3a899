#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/codec.h"
#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::opinion {

// The published runs that are compiled into the program: those of experiments/data/published_runs.csv that have a time
// and a prediction, in the words of a session. experiments/accuracy/shipped_runs.h writes them, and
// tests/opinion/known_runs_test.cpp compares them with the table.

/// Only jobs of one kind are compared.
enum class JobKind { kDense, kExperts, kHybrid, kAdapters };
inline constexpr EnumWords<JobKind, 4> kJobKindWords = {{{"dense", JobKind::kDense},
                                                         {"experts", JobKind::kExperts},
                                                         {"hybrid", JobKind::kHybrid},
                                                         {"adapters", JobKind::kAdapters}}};

/// Returns the kind that a job belongs to: adapters first, then by its layers.
JobKind kind_of(const workload::Workload& workload);

/// What decides how near two jobs are.
struct Subject {
  JobKind kind = JobKind::kDense;
  double parameters = 0.0;  ///< all of them, trained or not
  std::int64_t ranks = 1;
  std::int64_t seq_len = 1;  ///< tokens
  std::string precision;     ///< of its products, as in a session: "bf16", "mxfp8"
  int product_bits = 16;     ///< 32, 16, 8, 4
  std::string gpu;           ///< "h100-80gb"
  std::string architecture;  ///< "Hopper"; of a GPU that belongs to none that is known: its own name
  std::string framework;     ///< "megatron"

  friend bool operator==(const Subject&, const Subject&) = default;
};

Subject subject_of(const workload::Workload& workload, const workload::ClusterSpec& cluster);

/// One published run.
struct KnownRun {
  std::string id;           ///< its row in the table
  std::string source;       ///< "Megatron-Bridge performance summary"
  std::string source_part;  ///< "26.08"; "": the source has no parts
  std::string model;        ///< as the source calls it
  Subject subject;
  std::int64_t batch = 1;  ///< sequences of a step
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  std::string network;  ///< between nodes; "" for one node
  space::Configuration configuration;
  double step_time_s = 0.0;          ///< as published
  std::vector<std::string> assumed;  ///< what the source leaves open

  std::shared_ptr<const nlohmann::ordered_json> job;  ///< the workload without its sequence and batch

  workload::Workload workload() const;  ///< takes milliseconds
  workload::ClusterSpec cluster() const;
};

/// Returns the shipped runs, in the order of the table.
std::vector<KnownRun> known_runs();

/// Reads runs in the shipped form:
/// {"jobs": [{"kind": ..., "workload": {...}}, ...], "runs": [{"job": an index of jobs, ...}, ...]}.
std::vector<KnownRun> read_known_runs(const nlohmann::ordered_json& json);

/// The shipped form itself, as text.
extern const char* const kKnownRuns;

}  // namespace krigtune::opinion
