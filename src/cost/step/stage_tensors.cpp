#include "step/stage_tensors.h"

namespace krigtune {

StageTensors::StageTensors(const StepTemplate& model, const StageParts& parts, std::int64_t granule_elems)
    : parts_(parts), copies_table_(model.tied && parts.head && !parts.embedding) {
  const auto all = static_cast<int>(model.tensors.size());
  std::array<int, kUnitCount + 1> begin{};
  for (const TemplateTensor& tensor : model.tensors) {
    unit_.push_back(tensor.unit);
    for (std::size_t unit = static_cast<std::size_t>(tensor.unit) + 1; unit < begin.size(); ++unit) ++begin[unit];
  }
  for (std::size_t unit = 0; unit < kUnitCount; ++unit) template_first_[unit] = begin[unit];
  block_tensors_ = begin[2] - begin[1];
  const auto add_range = [&](int from, int to) {
    for (int t = from; t < to; ++t) add(model, t, granule_elems);
  };
  first_[0] = 0;
  if (parts.embedding) add_range(0, begin[1]);
  first_[1] = count();
  for (std::int64_t layer = 0; layer < parts.layers; ++layer) add_range(begin[1], begin[2]);
  first_[2] = count();
  if (parts.head) add_range(begin[2], all);
  if (copies_table_) {
    first_[0] = count();
    add(model, 0, granule_elems);
  }
  const auto order_unit = [&](Unit unit, std::int64_t layer) {
    for (const int t : model.ready_order) {
      if (model.tensors[static_cast<std::size_t>(t)].unit == unit) ready_order_.push_back(index(t, layer));
    }
  };
  if (copies_table_) ready_order_.push_back(first_[0]);
  if (parts.head) order_unit(Unit::kHead, 0);
  for (std::int64_t layer = parts.layers; layer > 0; --layer) order_unit(Unit::kBlock, layer - 1);
  if (parts.embedding) order_unit(Unit::kEmbedding, 0);
}

void StageTensors::add(const StepTemplate& model, int t, std::int64_t granule_elems) {
  const TemplateTensor& tensor = model.tensors[static_cast<std::size_t>(t)];
  const std::int64_t padded = (tensor.elems + granule_elems - 1) / granule_elems * granule_elems;
  elems_.push_back(tensor.elems);
  padded_.push_back(padded);
  tensor_.push_back(&tensor);
  padded_elems_ += padded;
  any_partial_ = any_partial_ || tensor.is_partial;
}

}  // namespace krigtune
