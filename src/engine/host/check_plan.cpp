#include <stdexcept>
#include <string>

#include "host/bound_plan.h"

namespace krigtune {
namespace {

class Checker {
 public:
  explicit Checker(const StepPlan& plan) : plan_(plan) {}

  void run() const {
    if (plan_.ranks < 1) throw std::logic_error("a plan has at least one rank");
    for (const Buffer& buffer : plan_.buffers) check(buffer);
    for (const TensorHome& home : plan_.parameters) check_kept(home.range.buffer, "the parameters");
    check_kept(plan_.loss, "the loss");
    for (std::size_t id = 0; id < plan_.operations.size(); ++id) check(id);
  }

 private:
  void check(const Buffer& buffer) const {
    const bool aligned = buffer.offset_bytes >= 0 && buffer.offset_bytes % kAlignmentBytes == 0;
    const std::int64_t arena_bytes = buffer.place == Place::kDevice ? plan_.arena_bytes : plan_.host_arena_bytes;
    if (!aligned || buffer.offset_bytes + buffer.bytes() > arena_bytes) {
      throw std::logic_error("buffer '" + buffer.name + "' does not lie in the arena on a multiple of 64 bytes");
    }
  }

  void check_kept(BufferId id, const char* what) const {
    if (!exists(id) || !plan_.buffers[static_cast<std::size_t>(id)].persistent) {
      throw std::logic_error(std::string(what) + " must lie in a persistent buffer");
    }
  }

  void check(std::size_t id) const {
    const Operation& operation = plan_.operations[id];
    if (operation.operands.size() < least_operands(operation.kind)) fail(id, "has too few operands");
    for (const OpId other : operation.waits) {
      if (other < 0 || static_cast<std::size_t>(other) >= id) fail(id, "waits for an operation that comes later");
    }
    const std::int64_t ranks = plan_.group_ranks(operation.group);
    for (const Operand& operand : operation.operands) check(id, operand.range, ranks);
    if (is_collective(operation.kind)) check_parts(id);
  }

  void check(std::size_t id, const Range& range, std::int64_t ranks) const {
    if (!exists(range.buffer)) fail(id, "names a buffer that does not exist");
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(range.buffer)];
    const std::int64_t last = range.begin_elems + (ranks - 1) * range.rank_stride_elems;
    const bool inside = range.begin_elems >= 0 && range.elems >= 0 && last >= 0 &&
                        range.begin_elems + range.elems <= buffer.elems && last + range.elems <= buffer.elems;
    if (!inside) fail(id, "leaves buffer '" + buffer.name + "'");
  }

  void check_parts(std::size_t id) const {
    const Operation& operation = plan_.operations[id];
    const bool gathers = operation.kind == OpKind::kAllGather;
    for (const Operand& operand : operation.operands) check_type(id, type_of(operand), gathers);
    if (gathers && operation.operands.size() % 2 != 0) fail(id, "gathers a shard into nothing");
    for (std::size_t i = gathers ? 1 : 0; i < operation.operands.size(); i += gathers ? 2 : 1) {
      const std::int64_t elems = operation.operands[i].range.elems;
      const std::int64_t ranks = plan_.group_ranks(operation.group);
      const bool parts = gathers || operation.kind == OpKind::kReduceScatter;
      if (parts && elems % ranks != 0) fail(id, "has uneven shards");
      if (gathers && operation.operands[i - 1].range.elems != elems / ranks) fail(id, "has a shard of wrong size");
      if (gathers && type_of(operation.operands[i - 1]) != type_of(operation.operands[i])) {
        fail(id, "gathers into another type");
      }
    }
  }

  DType type_of(const Operand& operand) const {
    return plan_.buffers[static_cast<std::size_t>(operand.range.buffer)].type;
  }

  void check_type(std::size_t id, DType type, bool gathers) const {
    const bool floats = type == DType::kFp32 || type == DType::kBf16 || type == DType::kFp16;
    if (!gathers && !floats) fail(id, "reduces what are no floating-point numbers");
  }

  bool exists(BufferId id) const { return id >= 0 && static_cast<std::size_t>(id) < plan_.buffers.size(); }

  [[noreturn]] void fail(std::size_t id, const std::string& what) const {
    throw std::logic_error("operation " + std::to_string(id) + " (" + to_string(plan_.operations[id].kind) + ") " +
                           what);
  }

  const StepPlan& plan_;
};

}  // namespace

void check_plan(const StepPlan& plan) { Checker(plan).run(); }

}  // namespace krigtune
