#pragma once
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "plan/step_plan.h"
#include "workload/hardware.h"
#include "workload/measured_machine.h"

namespace krigtune::plan {

/// Of an operation that is no collective.
workload::OpClass class_of(const Operation& operation);

/// Of a collective: as which one it is measured and predicted.
workload::ExchangeKind exchange_of(schedule::OpKind kind);

// What is known of each kind of operation, declared once: its operands in order, what it costs, whose derivative it is.
// The table is src/plan/op_traits.cpp, one block a kind; the checker, the costs, the executors and the tests of kernels
// read it.
//
//   const OpTraits& traits = traits_of(OpKind::kLayerNormBackward);
//   traits.operands[3].name                // "stats"
//   traits.operands[3].elems(shape)        // 2 * shape.rows
//   *traits.backward_of                    // OpKind::kLayerNormForward, whose operand "stats" it reads

/// What an operation does with an operand.
enum class Role : std::uint8_t {
  kInput,    ///< reads it
  kHeld,     ///< needs it to be there, does not look at it
  kOutput,   ///< writes it (kWrite) or adds to it (kReadWrite)
  kSet,      ///< writes it
  kAddedTo,  ///< adds to it
  kInPlace,  ///< replaces it by a function of it
};
bool allows(Role role, Access access);

struct OperandTraits {
  /// Of a backward operation: "x" is the forward operation's operand x, "dx" the loss's derivative by it.
  std::string_view name;
  Role role{};
  std::int64_t (*elems)(const Shape&) = nullptr;  ///< null: any number
  bool optional = false;                          ///< it and all behind it may be missing
  bool looked_up = false;                         ///< a table of which one row a token is touched: shape.inner elements
  std::string_view becomes{};                     ///< in place: what it holds afterwards, where that has another name
};

/// A few operands in order.
class OperandList {
 public:
  constexpr OperandList() = default;
  constexpr OperandList(std::initializer_list<OperandTraits> operands) : size_(operands.size()) {
    std::size_t i = 0;
    for (const OperandTraits& operand : operands) at_.at(i++) = operand;
  }
  constexpr std::size_t size() const { return size_; }
  constexpr const OperandTraits& operator[](std::size_t i) const { return at_[i]; }
  constexpr const OperandTraits* begin() const { return at_.data(); }
  constexpr const OperandTraits* end() const { return at_.data() + size_; }

 private:
  std::array<OperandTraits, 8> at_{};
  std::size_t size_ = 0;
};

/// How its work is counted, and what it is timed by.
enum class OpFamily : std::uint8_t {
  kElements,    ///< element by element or row by row; bound by memory
  kUpdate,      ///< element by element, of parameters by their gradients: (parameter, gradient, moments...)*
  kProduct,     ///< a matrix product
  kAttention,   ///< products and what is between them
  kCollective,  ///< of all ranks of a group, which exchange their ranges
};

/// One kind of operation. Its operands are `operands`, then any number of `group`s, then the step's control.
struct OpTraits {
  schedule::OpKind kind{};
  const char* name = "";
  OpFamily family = OpFamily::kElements;
  OperandList operands{};
  /// Follows once or more; its ranges have the same length, except a shard and its whole.
  OperandList group{};
  bool one_group = false;  ///< follows once
  bool control = false;  ///< may be followed by the state of clipping and loss scaling (ControlElement), which it reads

  /// As its kernel counts them; of the first operand's elements, or of each group's first operand's.
  double flops_per_elem = 0.0;
  /// Instead, where FLOPs are no count of such elements.
  double (*flops)(const Operation&) = nullptr;
  int wire_passes = 0;  ///< of a collective: how often (N - 1) / N of the data are sent

  std::optional<schedule::OpKind> backward_of{};
  /// The first so many operands get operand 0's derivative, as it is behind the operation, for their own.
  std::size_t passes_on = 0;
  bool is_loss = false;      ///< leaves the loss's derivative by operand 0 in operand 0
  bool draws = false;        ///< random numbers, where shape.dropout > 0
  bool places_rows = false;  ///< its result depends on which tokens of the batch its rows are

  constexpr bool is_list() const { return group.size() > 0; }
  /// Whether so many operands are possible.
  bool takes(std::size_t count) const;
  /// Operand `i` of an operation that has `count` of them.
  const OperandTraits& operand(std::size_t i, std::size_t count) const;
  /// Whether there is a table of which every tensor rank has another part.
  bool looks_up() const;
};
const OpTraits& traits_of(schedule::OpKind kind);

inline const char* to_string(schedule::OpKind kind) { return traits_of(kind).name; }
inline bool is_collective(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kCollective; }
inline bool is_update(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kUpdate; }
inline bool is_matrix_product(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kProduct; }
/// Matrix products and attention.
inline bool is_product(schedule::OpKind kind) {
  return is_matrix_product(kind) || traits_of(kind).family == OpFamily::kAttention;
}

/// What operand `name` of a backward operation is to the forward one.
struct ForwardOperand {
  std::size_t operand = 0;     ///< the forward operation's
  bool is_derivative = false;  ///< the loss's derivative by it
};
/// Nothing where the forward operation has no such operand.
std::optional<ForwardOperand> find_forward(const OpTraits& forward, std::string_view name);

/// Fills in FLOPs, bytes moved in memory and bytes sent, from kind, shape and operands; of the plan it reads the
/// buffers and the sizes of the groups.
void add_costs(Operation& operation, const StepPlan& plan);

}  // namespace krigtune::plan
