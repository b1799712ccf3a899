#include "engine/host/update_slices.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "plan/op_traits.h"

namespace krigtune::engine {
namespace {

OperandView slice_of(const OperandView& view, std::int64_t begin_elems, std::int64_t end_elems) {
  return {static_cast<std::byte*>(view.data) + begin_elems * schedule::size_bytes(view.type), end_elems - begin_elems,
          view.access, view.type};
}

// Returns the elements [begin_elems, end_elems) of all groups, counted as if the groups were concatenated, and the
// control.
BoundOperation slice_of(const BoundOperation& bound, std::size_t group, std::int64_t begin_elems,
                        std::int64_t end_elems) {
  BoundOperation slice;
  slice.operation = bound.operation;
  slice.kernel = bound.kernel;
  std::int64_t first = 0;
  std::size_t at = 0;
  for (; at + group <= bound.operands.size(); at += group) {
    const std::int64_t elems = bound.operands[at].elems;
    const std::int64_t from = std::max(begin_elems - first, std::int64_t{0});
    const std::int64_t to = std::min(end_elems - first, elems);
    for (std::size_t i = 0; from < to && i < group; ++i) {
      slice.operands.push_back(slice_of(bound.operands[at + i], from, to));
    }
    first += elems;
  }
  slice.operands.insert(slice.operands.end(), bound.operands.begin() + static_cast<std::ptrdiff_t>(at),
                        bound.operands.end());
  return slice;
}

}  // namespace

std::vector<BoundOperation> slices_of(const BoundOperation& bound, int parts, std::int64_t least_elems) {
  if (!plan::is_update(bound.operation->kind)) return {bound};
  const std::size_t group = plan::traits_of(bound.operation->kind).group.size();
  std::int64_t elems = 0;
  for (std::size_t at = 0; at + group <= bound.operands.size(); at += group) elems += bound.operands[at].elems;
  const std::int64_t slices = std::clamp<std::int64_t>(elems / least_elems, 1, std::max(parts, 1));
  if (slices == 1) return {bound};
  std::vector<BoundOperation> all;
  for (std::int64_t i = 0; i < slices; ++i) {
    all.push_back(slice_of(bound, group, elems * i / slices, elems * (i + 1) / slices));
  }
  return all;
}

int cores_of_a_process(std::int64_t processes) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const int cores = sched_getaffinity(0, sizeof(usable), &usable) == 0
                        ? CPU_COUNT(&usable)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, static_cast<int>(cores / std::max<std::int64_t>(processes, 1)));
}

}  // namespace krigtune::engine
