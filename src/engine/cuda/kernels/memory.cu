// Operations that only move or add elements.
#include "cuda/kernels/packs.h"

namespace krigtune::cuda {
namespace {

std::int64_t bytes_of(const OperandView& view) { return view.elems * size_bytes(view.type); }

}  // namespace

void zero(const DeviceCall& call) {
  for (const OperandView& range : call.operands) clear_bytes(call.queue, range.data, bytes_of(range));
}

void copy(const DeviceCall& call) {
  for (std::size_t i = 0; i + 1 < call.operands.size(); i += 2) {
    const OperandView& source = call.operands[i];
    if (source.type == call.operands[i + 1].type) {
      copy_bytes(call.queue, source.data, call.operands[i + 1].data, bytes_of(source));
      continue;
    }
    const Elements from(call, i);
    const Elements to(call, i + 1);
    launch_packs(call.queue, source.elems, {from, to}, [=] __device__(auto at) { to.set(at, from(at)); });
  }
}

void accumulate(const DeviceCall& call) {
  for (std::size_t i = 0; i + 1 < call.operands.size(); i += 2) {
    const Elements from(call, i);
    const Elements to(call, i + 1);
    launch_packs(call.queue, call.operands[i + 1].elems, {from, to}, [=] __device__(auto at) { to.put(at, from(at)); });
  }
}

void add(const DeviceCall& call) {
  const Elements y(call, 0);
  const Elements x(call, 1);
  launch_packs(call.queue, call.operands[0].elems, {y, x}, [=] __device__(auto at) { y.add(at, x(at)); });
}

}  // namespace krigtune::cuda
