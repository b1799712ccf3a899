// Look-ups: x[t] = table[token[t]], 0 where another rank holds the token; x[t] += positions[t mod seq], and its
// gradient. A table split over tensor ranks holds the tokens [rank * outer, (rank + 1) * outer).
#include "cuda/kernels/packs.h"

namespace krigtune::cuda {
namespace {

std::int64_t first_token(const DeviceCall& call) {
  const std::int64_t rows_of_batch = call.shape().batch * call.shape().seq;
  return call.shape().rows < rows_of_batch ? call.context.tensor_rank * call.shape().rows : 0;
}

}  // namespace

void embedding_forward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t held = call.shape().outer;
  const std::int64_t first = call.context.tensor_rank * held;
  const auto* tokens = call.data<const std::int32_t>(0);
  const Elements table(call, 1);
  const Elements x(call, 2);
  launch_row_packs(call.queue, call.shape().rows, h, {table, x}, [=] __device__(std::int64_t t, auto at) {
    const std::int64_t row = tokens[t] - first;
    x.put(at + t * h, row >= 0 && row < held ? table(at + row * h) : decltype(x(at)){});
  });
}

void positions_forward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t first = first_token(call);
  const Elements x(call, 0);
  const Elements positions(call, 1);
  launch_row_packs(call.queue, call.shape().rows, h, {x, positions}, [=] __device__(std::int64_t row, auto at) {
    x.add(at + row * h, positions(at + (first + row) % seq * h));
  });
}

void positions_backward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t rows = call.shape().rows;
  const std::int64_t first = first_token(call);
  const Elements dx(call, 0);
  const Elements dpositions(call, 1);
  launch_row_packs(call.queue, seq, h, {dx, dpositions}, [=] __device__(std::int64_t t, auto at) {
    decltype(dx(at)) sum{};
    // From the first row at this position on.
    for (std::int64_t row = (t - first % seq + seq) % seq; row < rows; row += seq) sum = plus(sum, dx(at + row * h));
    dpositions.put(at + t * h, sum);
  });
}

}  // namespace krigtune::cuda
