#pragma once
// Bodies as plain loops, for tests without a GPU: a block is one thread.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#define KRIGTUNE_DEVICE
#define KRIGTUNE_HOST_AND_DEVICE
#define KRIGTUNE_BODY [=]

namespace krigtune::cuda {

class Block {
 public:
  explicit Block(float* shared) : shared_(shared) {}

  float* shared() const { return shared_; }

  template <class Each>
  void for_each(std::int64_t count, Each each) const {
    for (std::int64_t i = 0; i < count; ++i) each(i);
  }
  template <class Term>
  float sum(std::int64_t count, Term term) const {
    float all = 0.0F;
    for (std::int64_t i = 0; i < count; ++i) all += term(i);
    return all;
  }
  template <class Term>
  float largest(std::int64_t count, Term term) const {
    float all = -INFINITY;
    for (std::int64_t i = 0; i < count; ++i) all = std::fmax(all, term(i));
    return all;
  }

 private:
  float* shared_;
};

inline void clear_bytes(Queue /*queue*/, void* data, std::int64_t bytes) {
  std::memset(data, 0, static_cast<std::size_t>(bytes));
}
inline void copy_bytes(Queue /*queue*/, const void* from, void* to, std::int64_t bytes) {
  std::memmove(to, from, static_cast<std::size_t>(bytes));
}

template <class Body>
void launch_elements(Queue /*queue*/, std::int64_t count, Body body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

template <class Body>
void launch_rows(Queue /*queue*/, std::int64_t rows, Body body) {
  std::array<float, kSharedFloats> shared{};
  const Block block(shared.data());
  for (std::int64_t row = 0; row < rows; ++row) body(block, row);
}

}  // namespace krigtune::cuda
