#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/host/kernels/kernel.h"
#include "engine/host/number_types.h"
#include "krigtune/rng.h"

namespace krigtune::cuda {

/// The elements of one operand, as bytes.
struct Datum {
  schedule::DType type = schedule::DType::kFp32;
  plan::Access access = plan::Access::kRead;
  std::vector<std::byte> bytes;

  std::int64_t elems() const { return static_cast<std::int64_t>(bytes.size()) / schedule::size_bytes(type); }
  std::vector<float> numbers() const {
    std::vector<float> values(static_cast<std::size_t>(elems()));
    if (engine::is_16_bit(type)) {
      engine::widen(type, reinterpret_cast<const std::uint16_t*>(bytes.data()), elems(), values.data());
    } else {
      std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    return values;
  }
};

/// One operation with its operands.
struct Case {
  std::string name;
  schedule::OpKind kind{};
  plan::Shape shape;
  std::vector<Datum> operands;
  double scale = 1.0;
  engine::StepContext context{};
};

inline Datum bytes_of(schedule::DType type, const std::vector<float>& values, plan::Access access) {
  Datum datum{type, access,
              std::vector<std::byte>(values.size() * static_cast<std::size_t>(schedule::size_bytes(type)))};
  if (engine::is_16_bit(type)) {
    engine::round_to(type, values.data(), static_cast<std::int64_t>(values.size()),
                     reinterpret_cast<std::uint16_t*>(datum.bytes.data()));
  } else {
    std::memcpy(datum.bytes.data(), values.data(), datum.bytes.size());
  }
  return datum;
}

/// The sizes from which those of the cases' operands follow.
struct Sizes {
  std::int64_t batch = 2, seq = 7, hidden = 24, outer = 10;

  std::int64_t rows() const { return batch * seq; }
};

/// Makes operands whose numbers are all different, and the same in every run.
class Maker {
 public:
  /// `type`: of the model's numbers; `out`: whether results overwrite what is there (kWrite) or are added (kReadWrite).
  Maker(schedule::DType type, plan::Access out) : type_(type), out_(out) {}

  Datum in(std::int64_t elems, double mean = 0.0, double stddev = 1.0) {
    return bytes_of(type_, draw(elems, mean, stddev), plan::Access::kRead);
  }
  Datum out(std::int64_t elems) { return bytes_of(type_, draw(elems, 0.0, 1.0), out_); }
  Datum in_place(std::int64_t elems) { return bytes_of(type_, draw(elems, 0.0, 1.0), plan::Access::kReadWrite); }
  /// Returns numbers in fp32, whatever the model's type is.
  Datum single(std::int64_t elems, double mean, double stddev, plan::Access access) {
    return bytes_of(schedule::DType::kFp32, draw(elems, mean, stddev), access);
  }
  static Datum singles(const std::vector<float>& values, plan::Access access) {
    return bytes_of(schedule::DType::kFp32, values, access);
  }
  Datum tokens(std::int64_t elems, std::uint64_t below, plan::Access access = plan::Access::kRead) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(elems));
    for (std::int32_t& value : values) value = static_cast<std::int32_t>(rng_.below(below));
    Datum datum{schedule::DType::kInt32, access, std::vector<std::byte>(values.size() * sizeof(std::int32_t))};
    std::memcpy(datum.bytes.data(), values.data(), datum.bytes.size());
    return datum;
  }
  Datum mask(std::int64_t elems, plan::Access access) {
    Datum datum{schedule::DType::kUint8, access, std::vector<std::byte>(static_cast<std::size_t>(elems))};
    for (std::byte& keeps : datum.bytes) keeps = static_cast<std::byte>(rng_.below(2));
    return datum;
  }

 private:
  std::vector<float> draw(std::int64_t elems, double mean, double stddev) {
    std::vector<float> values(static_cast<std::size_t>(elems));
    for (float& value : values) value = static_cast<float>(mean + stddev * rng_.normal());
    return values;
  }

  schedule::DType type_;
  plan::Access out_;
  Rng rng_{7, 1};
};

/// Returns at least one case for every kind of operation except collectives and attention. Kinds without a case written
/// by hand get theirs from the table of op_table.cpp. The cases are of rank 1 of 2 in both groups.
std::vector<Case> kernel_cases(schedule::DType type, plan::Access out, const Sizes& sizes = {});
/// Returns forward cases of attention: flash and eager, each with and without dropout, and in fp32 also flash with more
/// keys than a tile has.
std::vector<Case> attention_cases(schedule::DType type, plan::Access out);
/// Returns the backward case that belongs to a forward case that was executed.
Case backward_of(const Case& forward, plan::Access out);

}  // namespace krigtune::cuda
