// The table from operation to kernel. A new kernel needs one .cpp file, its declaration and its line here. Collectives
// have no kernel; a communicator executes them.
#include <array>

#include "engine/host/kernels/kernel_functions.h"
#include "engine/host/kernels/kernel_unit.h"

#define KRIGTUNE_TEXT_OF(token) #token
#define KRIGTUNE_TEXT(macro) KRIGTUNE_TEXT_OF(macro)

namespace krigtune::engine::KRIGTUNE_KERNELS {

// The kernels of the files in this folder, one line for each.
template <class T>
void load_batch(const KernelCall& call);
template <class T>
void zero(const KernelCall& call);
template <class T>
void accumulate(const KernelCall& call);
template <class T>
void embedding_forward(const KernelCall& call);
template <class T>
void embedding_backward(const KernelCall& call);
template <class T>
void positions_forward(const KernelCall& call);
template <class T>
void positions_backward(const KernelCall& call);
template <class T>
void layer_norm_forward(const KernelCall& call);
template <class T>
void layer_norm_backward(const KernelCall& call);
template <class T>
void rms_norm_forward(const KernelCall& call);
template <class T>
void rms_norm_backward(const KernelCall& call);
template <class T>
void qk_norm_forward(const KernelCall& call);
template <class T>
void qk_norm_backward(const KernelCall& call);
template <class T>
void linear_forward(const KernelCall& call);
template <class T>
void linear_backward_input(const KernelCall& call);
template <class T>
void linear_backward_weight(const KernelCall& call);
template <class T>
void add_bias(const KernelCall& call);
template <class T>
void bias_backward(const KernelCall& call);
template <class T>
void rotary_forward(const KernelCall& call);
template <class T>
void rotary_backward(const KernelCall& call);
template <class T>
void attention_forward(const KernelCall& call);
template <class T>
void attention_backward(const KernelCall& call);
template <class T>
void gelu_forward(const KernelCall& call);
template <class T>
void gelu_backward(const KernelCall& call);
template <class T>
void swiglu_forward(const KernelCall& call);
template <class T>
void swiglu_backward(const KernelCall& call);
template <class T>
void dropout_forward(const KernelCall& call);
template <class T>
void dropout_backward(const KernelCall& call);
template <class T>
void add(const KernelCall& call);
template <class T>
void cross_entropy(const KernelCall& call);
template <class T>
void vocab_max(const KernelCall& call);
template <class T>
void vocab_sum_exp(const KernelCall& call);
template <class T>
void vocab_cross_entropy(const KernelCall& call);
template <class T>
void gradient_norm(const KernelCall& call);
template <class T>
void update_loss_scale(const KernelCall& call);
template <class T>
void adamw(const KernelCall& call);
template <class T>
void sgd(const KernelCall& call);

// The functions that return how much scratch memory a kernel needs.
using ScratchElems = std::int64_t(const plan::Shape&);
ScratchElems linear_scratch, rotary_scratch, attention_scratch;

namespace {

template <class T>
constexpr std::array kTable = std::to_array<KernelEntry<T>>({
    {schedule::OpKind::kLoadBatch, load_batch<T>},
    {schedule::OpKind::kZero, zero<T>},
    {schedule::OpKind::kCopy, accumulate<T>},
    {schedule::OpKind::kAccumulate, accumulate<T>},
    {schedule::OpKind::kEmbeddingForward, embedding_forward<T>},
    {schedule::OpKind::kEmbeddingBackward, embedding_backward<T>},
    {schedule::OpKind::kPositionsForward, positions_forward<T>},
    {schedule::OpKind::kPositionsBackward, positions_backward<T>},
    {schedule::OpKind::kLayerNormForward, layer_norm_forward<T>},
    {schedule::OpKind::kLayerNormBackward, layer_norm_backward<T>},
    {schedule::OpKind::kRmsNormForward, rms_norm_forward<T>},
    {schedule::OpKind::kRmsNormBackward, rms_norm_backward<T>},
    {schedule::OpKind::kQkNormForward, qk_norm_forward<T>},
    {schedule::OpKind::kQkNormBackward, qk_norm_backward<T>},
    {schedule::OpKind::kLinearForward, linear_forward<T>, linear_scratch},
    {schedule::OpKind::kLinearBackwardInput, linear_backward_input<T>, linear_scratch},
    {schedule::OpKind::kLinearBackwardWeight, linear_backward_weight<T>, linear_scratch},
    {schedule::OpKind::kAddBias, add_bias<T>},
    {schedule::OpKind::kBiasBackward, bias_backward<T>},
    {schedule::OpKind::kRotaryForward, rotary_forward<T>, rotary_scratch},
    {schedule::OpKind::kRotaryBackward, rotary_backward<T>, rotary_scratch},
    {schedule::OpKind::kAttentionForward, attention_forward<T>, attention_scratch},
    {schedule::OpKind::kAttentionBackward, attention_backward<T>, attention_scratch},
    {schedule::OpKind::kGeluForward, gelu_forward<T>},
    {schedule::OpKind::kGeluBackward, gelu_backward<T>},
    {schedule::OpKind::kSwigluForward, swiglu_forward<T>},
    {schedule::OpKind::kSwigluBackward, swiglu_backward<T>},
    {schedule::OpKind::kDropoutForward, dropout_forward<T>},
    {schedule::OpKind::kDropoutBackward, dropout_backward<T>},
    {schedule::OpKind::kAdd, add<T>},
    {schedule::OpKind::kCrossEntropy, cross_entropy<T>},
    {schedule::OpKind::kVocabMax, vocab_max<T>},
    {schedule::OpKind::kVocabSumExp, vocab_sum_exp<T>},
    {schedule::OpKind::kVocabCrossEntropy, vocab_cross_entropy<T>},
    {schedule::OpKind::kGradientNorm, gradient_norm<T>},
    {schedule::OpKind::kLossScale, update_loss_scale<T>},
    {schedule::OpKind::kAdamW, adamw<T>},
    {schedule::OpKind::kSgd, sgd<T>},
});

}  // namespace

extern const KernelUnit kUnit;
constexpr KernelUnit kUnit{
    .name = KRIGTUNE_TEXT(KRIGTUNE_KERNELS),
    .floats = kTable<float>,
    .doubles = kTable<double>,
    .multiply_floats = multiply<float>,
    .multiply_doubles = multiply<double>,
};

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
