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

/// Returns the class of an operation that is not a collective.
workload::OpClass class_of(const Operation& operation);

/// Returns the kind of measurement and prediction for a collective.
workload::ExchangeKind exchange_of(schedule::OpKind kind);

// What is known about each kind of operation, declared once: its operands in order, its cost, and whose derivative it
// is. The table is in src/plan/op_table.cpp, one block for each kind. The checker, the costs, the executors and the
// tests of kernels read it.
//
//   const OpTraits& traits = traits_of(OpKind::kLayerNormBackward);
//   traits.operands[2].name                // "stats"
//   traits.operands[2].elems(shape)        // 2 * shape.rows
//   *traits.backward_of                    // OpKind::kLayerNormForward, whose operand "stats" it reads

/// How an operation uses an operand.
enum class Role : std::uint8_t {
  kInput,    ///< reads it
  kHeld,     ///< needs it to exist but does not read it
  kOutput,   ///< writes it (kWrite) or adds to it (kReadWrite)
  kSet,      ///< writes it
  kAddedTo,  ///< adds to it
  kInPlace,  ///< replaces it by a function of its value
};
bool allows(Role role, Access access);

struct OperandTraits {
  /// For a backward operation: "x" is the forward operation's operand x, and "dx" the derivative of the loss with
  /// respect to it.
  std::string_view name;
  Role role{};
  std::int64_t (*elems)(const Shape&) = nullptr;  ///< number of elements; null: any
  bool optional = false;                          ///< this operand and all after it may be missing
  bool predicted_only = false;                    ///< no executor has it: a plan with it serves for predictions only
  bool looked_up = false;                         ///< a table of which each token uses one row of shape.inner elements
  bool scratch = false;                           ///< what it writes it also reads, and nobody else does
  std::string_view becomes{};                     ///< for kInPlace: the name of the new contents, if different
};

/// A short, ordered list of operands.
class OperandList {
 public:
  constexpr OperandList() = default;
  constexpr OperandList(std::initializer_list<OperandTraits> operands) { append(operands); }
  constexpr OperandList(std::initializer_list<OperandTraits> first, std::initializer_list<OperandTraits> then) {
    append(first);
    append(then);
  }
  constexpr std::size_t size() const { return size_; }
  constexpr const OperandTraits& operator[](std::size_t i) const { return at_[i]; }
  constexpr const OperandTraits* begin() const { return at_.data(); }
  constexpr const OperandTraits* end() const { return at_.data() + size_; }

 private:
  constexpr void append(std::initializer_list<OperandTraits> operands) {
    for (const OperandTraits& operand : operands) at_.at(size_++) = operand;
  }

  std::array<OperandTraits, 12> at_{};
  std::size_t size_ = 0;
};

/// How an operation's work is counted, and what limits its speed.
enum class OpFamily : std::uint8_t {
  kElements,    ///< element by element or row by row; limited by memory bandwidth
  kUpdate,      ///< element by element, parameters by their gradients: (parameter, gradient, moments...)*
  kProduct,     ///< a matrix product
  kAttention,   ///< products and the operations between them
  kScan,        ///< products within chunks of tokens, and kernels beside them that memory limits
  kCollective,  ///< involves all ranks of a group, which exchange their ranges
};

/// One kind of operation. Its operands are `operands`, then any number of `group`s, then the step's control.
struct OpTraits {
  schedule::OpKind kind{};
  const char* name = "";
  OpFamily family = OpFamily::kElements;
  OperandList operands{};
  /// Operands that follow one or more times. Their ranges have the same length, except for a shard and its whole.
  OperandList group{};
  bool one_group = false;  ///< the group follows exactly once
  bool control = false;  ///< may be followed by the state of clipping and loss scaling (ControlElement), which it reads

  /// FLOPs as the kernel counts them, per element of the first operand, or of the first operand of each group.
  double flops_per_elem = 0.0;
  /// If set, used instead, because the FLOPs are not proportional to such elements.
  double (*flops)(const Operation&) = nullptr;
  int wire_passes = 0;  ///< for a collective: how often (N - 1) / N of the data are sent

  std::optional<schedule::OpKind> backward_of{};
  /// The derivative of operand 0, as it is after the operation, becomes the derivative of this many first operands.
  std::size_t passes_on = 0;
  bool is_loss = false;      ///< leaves the loss's derivative with respect to operand 0 in operand 0
  bool draws = false;        ///< draws random numbers if shape.dropout > 0
  bool places_rows = false;  ///< its result depends on which tokens of the batch its rows contain
  /// No executor has a kernel for it: a plan with it serves for predictions only.
  bool predicted_only = false;

  constexpr bool is_list() const { return group.size() > 0; }
  /// Returns whether the kind can have this number of operands.
  bool takes(std::size_t count) const;
  /// Returns operand `i` of an operation with `count` operands.
  const OperandTraits& operand(std::size_t i, std::size_t count) const;
  /// Returns whether it uses a table of which every tensor rank has a different part.
  bool looks_up() const;
};
const OpTraits& traits_of(schedule::OpKind kind);

inline const char* to_string(schedule::OpKind kind) { return traits_of(kind).name; }
inline bool is_collective(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kCollective; }
inline bool is_update(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kUpdate; }
inline bool is_matrix_product(schedule::OpKind kind) { return traits_of(kind).family == OpFamily::kProduct; }
/// Returns whether the kind is a matrix product, attention or a scan.
inline bool is_product(schedule::OpKind kind) {
  const OpFamily family = traits_of(kind).family;
  return is_matrix_product(kind) || family == OpFamily::kAttention || family == OpFamily::kScan;
}

/// The forward operand that operand `name` of a backward operation refers to.
struct ForwardOperand {
  std::size_t operand = 0;     ///< index in the forward operation
  bool is_derivative = false;  ///< the derivative of the loss with respect to it
};
/// Returns nothing if the forward operation has no such operand.
std::optional<ForwardOperand> find_forward(const OpTraits& forward, std::string_view name);

/// Sets FLOPs, bytes moved in memory and bytes sent from kind, shape and operands. From the plan it reads the buffers
/// and the group sizes.
void add_costs(Operation& operation, const StepPlan& plan);

}  // namespace krigtune::plan
