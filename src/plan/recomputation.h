#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "plan/plan_builder.h"
#include "schedule/knobs.h"

namespace krigtune::plan {

/// An operation of the compute stream that a step emits.
struct Emitted {
  schedule::OpKind kind{};
  bool of_tensor_group = false;
  Shape shape;
  std::vector<Operand> operands;
  double scale = 1.0;
};

/// Computes modules of a layer again in the backward pass (schedule::Module), by the plan's data flow: what a module
/// writes in the forward pass is not kept, unless something outside reads it and the module keeps its output. The first
/// operation of the backward pass that reads what is not there is preceded by all of the module's operations, which
/// write into new buffers.
class Recomputation {
 public:
  /// Empty: nothing is computed again. `builder` must outlive it.
  Recomputation(PlanBuilder& builder, const std::optional<schedule::Modules>& modules)
      : builder_(builder), modules_(modules) {}

  /// Sets where in the step the following operations belong.
  void at(schedule::Phase phase, std::int64_t micro_step, std::int64_t layer);
  /// The following operations of the forward pass are the module's, until close(); `part` tells several of a kind in a
  /// layer apart. A module within another one that is computed again is a part of that.
  void open(schedule::Module module, int part);
  void close();

  /// Appends the operation.
  void emit(Emitted operation);

 private:
  struct Region {
    schedule::Module module{};
    std::int64_t micro_step = -1;
    std::vector<Emitted> operations;
    std::set<BufferId> written;
    bool is_done = false;  ///< computed again
  };

  void note(const Emitted& operation);
  void compute_again(Region& region);
  BufferId again(BufferId buffer, Region* writer);
  void append(Emitted operation);

  PlanBuilder& builder_;
  std::optional<schedule::Modules> modules_;
  schedule::Phase phase_ = schedule::Phase::kForward;
  std::int64_t micro_step_ = 0;
  std::int64_t layer_ = -1;
  int depth_ = 0;  ///< modules that are open
  int depth_of_open_ = 0;
  Region* open_ = nullptr;
  std::map<std::tuple<std::int64_t, schedule::Module, int>, Region> regions_;  ///< by layer, module and part
  std::map<BufferId, Region*> dropped_;                                        ///< what is not kept, and what writes it
  std::map<BufferId, BufferId> again_of_;                                      ///< where it is written again
};

}  // namespace krigtune::plan
