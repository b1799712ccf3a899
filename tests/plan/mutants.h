#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/op_traits.h"
#include "plan/step_plan.h"

namespace krigtune {

/// Calls `visit(name, mutant)` for every plan that differs from `plan` by one mistake of these classes.
class Mutants {
 public:
  using Visit = std::function<void(const std::string&, const plan::StepPlan&)>;

  explicit Mutants(const plan::StepPlan& plan) : plan_(plan) {}

  /// Visits only every `stride`-th of the many mistakes in operands and buffers.
  void for_each(std::size_t stride, const Visit& visit) const {
    std::size_t count = 0;
    const auto visit_some = [&](const std::string& name, const plan::StepPlan& mutant) {
      if (count++ % stride == 0) visit(name, mutant);
    };
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      of_operation(i, visit);
      of_operands(i, visit_some);
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) of_buffer(b, visit_some);
  }

 private:
  plan::Operation& at(plan::StepPlan& plan, std::size_t i) const { return plan.operations[i]; }

  std::string name(const char* what, std::size_t i) const {
    const plan::Operation& operation = plan_.operations[i];
    return std::string(what) + " " + std::to_string(i) + " (" + plan::to_string(operation.kind) + ")";
  }

  void of_operation(std::size_t i, const Visit& visit) const {
    visit(name("without", i), without(i));
    visit(name("twice", i), twice(i));
    for (std::size_t w = 0; w < plan_.operations[i].waits.size(); ++w) {
      plan::StepPlan mutant = plan_;
      at(mutant, i).waits.erase(at(mutant, i).waits.begin() + static_cast<std::ptrdiff_t>(w));
      visit(name("without a wait of", i), mutant);
    }
    // Finds the next operation of its stream.
    for (std::size_t j = i + 1; j < plan_.operations.size(); ++j) {
      if (plan_.operations[j].stream != plan_.operations[i].stream) continue;
      visit(name("swapped with the next one:", i), swapped(i, j));
      break;
    }
    if (plan::is_collective(plan_.operations[i].kind)) of_collective(i, visit);
  }

  void of_collective(std::size_t i, const Visit& visit) const {
    for (const schedule::OpKind kind : {schedule::OpKind::kAllReduce, schedule::OpKind::kAllReduceMax,
                                        schedule::OpKind::kReduceScatter, schedule::OpKind::kAllGather}) {
      if (kind == plan_.operations[i].kind) continue;
      plan::StepPlan mutant = plan_;
      at(mutant, i).kind = kind;
      visit(name("with another kind of collective:", i), mutant);
    }
    plan::StepPlan mutant = plan_;
    at(mutant, i).group =
        plan_.operations[i].group == schedule::Group::kData ? schedule::Group::kTensor : schedule::Group::kData;
    visit(name("in the other group:", i), mutant);
    mutant = plan_;
    at(mutant, i).wire_bytes += 4;
    visit(name("with other bytes sent:", i), mutant);
    mutant = plan_;
    at(mutant, i).operands.resize(at(mutant, i).operands.size() -
                                  (at(mutant, i).kind == schedule::OpKind::kAllGather ? 2 : 1));
    visit(name("with one range less:", i), mutant);
  }

  void of_operands(std::size_t i, const Visit& visit) const {
    for (std::size_t k = 0; k < plan_.operations[i].operands.size(); ++k) {
      const auto change = [&](const char* what, const std::function<void(plan::Operand&)>& mutate) {
        plan::StepPlan mutant = plan_;
        mutate(at(mutant, i).operands[k]);
        visit(name((std::string(what) + " of operand " + std::to_string(k) + " of").c_str(), i), mutant);
      };
      change("fewer elements", [](plan::Operand& operand) { operand.range.elems -= 1; });
      change("an earlier begin", [](plan::Operand& operand) { operand.range.begin_elems -= 1; });
      change("a later begin", [](plan::Operand& operand) { operand.range.begin_elems += 1; });
      change("another stride", [](plan::Operand& operand) { operand.range.rank_stride_elems += 16; });
      for (const plan::Access access : {plan::Access::kRead, plan::Access::kWrite, plan::Access::kReadWrite}) {
        if (access == plan_.operations[i].operands[k].access) continue;
        change("another access", [&](plan::Operand& operand) { operand.access = access; });
      }
      // These use the same place in another buffer that is large enough: the next one, and the previous one.
      for (const plan::BufferId step : {1, -1}) {
        change("another buffer", [&](plan::Operand& operand) {
          const auto count = static_cast<plan::BufferId>(plan_.buffers.size());
          operand.range.buffer = (operand.range.buffer + step + count) % count;
        });
      }
    }
  }

  void of_buffer(std::size_t b, const Visit& visit) const {
    const plan::Buffer& buffer = plan_.buffers[b];
    const auto change = [&](const char* what, const std::function<void(plan::Buffer&)>& mutate) {
      plan::StepPlan mutant = plan_;
      mutate(mutant.buffers[b]);
      visit(what + (" " + buffer.name), mutant);
    };
    change("shorter:", [](plan::Buffer& mutant) { mutant.elems -= 1; });
    change("64 bytes lower:", [](plan::Buffer& mutant) { mutant.offset_bytes -= schedule::kAlignmentBytes; });
    change("64 bytes higher:", [](plan::Buffer& mutant) { mutant.offset_bytes += schedule::kAlignmentBytes; });
    change("kept or not:", [](plan::Buffer& mutant) { mutant.persistent = !mutant.persistent; });
    for (std::size_t other = 0; other < plan_.buffers.size(); other += 3) {
      if (other == b || plan_.buffers[other].offset_bytes == buffer.offset_bytes) continue;
      change(("onto " + plan_.buffers[other].name + ":").c_str(),
             [&](plan::Buffer& mutant) { mutant.offset_bytes = plan_.buffers[other].offset_bytes; });
    }
  }

  // Operations that waited for the removed one wait for what it waited for, and for what came before it in its stream.
  plan::StepPlan without(std::size_t i) const {
    plan::StepPlan mutant = plan_;
    const auto removed = static_cast<plan::OpId>(i);
    std::vector<plan::OpId> instead = plan_.operations[i].waits;
    for (std::size_t j = i; j > 0; --j) {
      if (plan_.operations[j - 1].stream != plan_.operations[i].stream) continue;
      instead.push_back(static_cast<plan::OpId>(j) - 1);
      break;
    }
    mutant.operations.erase(mutant.operations.begin() + removed);
    for (plan::Operation& operation : mutant.operations) {
      std::vector<plan::OpId> waits;
      for (const plan::OpId other : operation.waits) {
        if (other == removed) {
          waits.insert(waits.end(), instead.begin(), instead.end());
        } else {
          waits.push_back(other < removed ? other : other - 1);
        }
      }
      operation.waits = waits;
    }
    return mutant;
  }

  plan::StepPlan twice(std::size_t i) const {
    plan::StepPlan mutant = plan_;
    const auto first = static_cast<plan::OpId>(i);
    mutant.operations.insert(mutant.operations.begin() + first, plan_.operations[i]);
    for (plan::Operation& operation : mutant.operations) {
      for (plan::OpId& other : operation.waits) other += other >= first ? 1 : 0;
    }
    return mutant;
  }

  plan::StepPlan swapped(std::size_t i, std::size_t j) const {
    plan::StepPlan mutant = plan_;
    // It is issued in the other's place, with those of its own waits that are not too late.
    std::swap(mutant.operations[i], mutant.operations[j]);
    const auto moved = [&](plan::OpId other) {
      if (other == static_cast<plan::OpId>(i)) return static_cast<plan::OpId>(j);
      return other == static_cast<plan::OpId>(j) ? static_cast<plan::OpId>(i) : other;
    };
    for (std::size_t k = 0; k < mutant.operations.size(); ++k) {
      for (plan::OpId& other : mutant.operations[k].waits) other = moved(other);
    }
    return mutant;
  }

  const plan::StepPlan& plan_;
};

}  // namespace krigtune
