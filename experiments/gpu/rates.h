#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "operation_timer.h"
#include "plan/step_plan.h"
#include "workload/workload.h"

namespace krigtune::cuda {

inline constexpr double kMicroseconds = 1e6;  ///< in a second

struct Scale {
  bool small = false;  ///< tiny sizes, to try the program
  Effort effort{};
};

/// A CSV file, written whole.
class Table {
 public:
  Table(std::filesystem::path path, const std::vector<std::string>& header);
  void add(const std::vector<std::string>& row);
  void write() const;

 private:
  std::filesystem::path path_;
  std::string text_;
  int rows_ = 0;
};
std::string number(double value);  ///< six digits

/// One layer of GPT-2 1.5B with its embeddings and its head, in bf16.
workload::Workload one_layer(const Scale& scale);

struct Run {
  std::int64_t micro_batch = 1, micro_steps = 1, zero_stage = 0, data_ranks = 1, tensor_ranks = 1;
};
plan::StepPlan plan_of(const workload::Workload& workload, const Run& run);

/// Writes kernels.csv.
void time_kernels(const std::filesystem::path& folder, const Scale& scale);

}  // namespace krigtune::cuda
