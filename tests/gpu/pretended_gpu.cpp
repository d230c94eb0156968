// A "cuda" device for a CPU-only build of PyTorch, so that code for a GPU can be tested without one.
//
// Such a build knows the device type but has no allocator, guard, hooks or kernels for it. This file
// registers all four. A tensor is then really on device(type='cuda', index=0): device checks,
// generators and autocast behave as on a GPU. Its memory is the host's, and every operator runs the
// CPU's kernel on an alias of it. As on a GPU,
//   * an operator whose tensors are on two devices raises (a CPU scalar may stand where
//     TensorIterator lets it, and CPU indices where indexing does),
//   * a generator must be on the device of the tensors,
//   * everything for which the host would have to wait is counted, and so are operators and bytes.
// Speed, other rounding, streams and graphs it cannot show. pretended_gpu.py builds and loads it.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/multinomial_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace {
const c10::Device kGpu(c10::DeviceType::CUDA, 0);
const c10::Device kHost(c10::DeviceType::CPU);

// ---- what is counted, and how Python asks for it ------------------------------------------------
std::atomic<int64_t> operators{0}, allocated{0}, peak{0}, capacity{int64_t(141e9)};
void (*on_wait)(const char*) = nullptr;
std::unordered_set<std::string> lenient;  // operators that do not check devices before TensorIterator

void count_bytes(int64_t n) {
  int64_t now = (allocated += n), most = peak.load();
  while (now > most && !peak.compare_exchange_weak(most, now)) {}
}
void wait_for(const std::string& what) {
  if (on_wait) on_wait(what.c_str());
}
}  // namespace

extern "C" {
int64_t gpu_operators() { return operators; }
int64_t gpu_allocated() { return allocated; }
int64_t gpu_peak() { return peak; }
void gpu_reset_peak() { peak = allocated.load(); }
void gpu_set_capacity(int64_t bytes) { capacity = bytes; }
void gpu_on_wait(void (*listener)(const char*)) { on_wait = listener; }
void gpu_lenient(const char* name) { lenient.insert(name); }
}

namespace {
// ---- memory -------------------------------------------------------------------------------------
struct Block {  // `data` is owned, or `kept` owns it: a result that a CPU kernel has allocated
  void* data;
  int64_t bytes;
  c10::Storage kept;
};
void free_block(void* pointer) {
  auto* block = static_cast<Block*>(pointer);
  count_bytes(-block->bytes);
  free(block->data);
  delete block;
}
c10::DataPtr adopt(const c10::Storage& storage) {
  int64_t bytes = storage.nbytes();
  count_bytes(bytes);
  return {storage.mutable_data(), new Block{nullptr, bytes, storage}, &free_block, kGpu};
}
struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    void* data = nullptr;
    bool fits = allocated + int64_t(n) <= capacity && (!n || !posix_memalign(&data, 64, n));
    if (!fits) C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory (pretended)");
    if (n) memset(data, 0xFF, n);  // NaN, -1, True: what nobody wrote must not be read
    count_bytes(n);
    return {data, new Block{data, int64_t(n), {}}, &free_block, kGpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t n) const override { memcpy(to, from, n); }
} allocator;
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &allocator);

// ---- device guard: one device, one stream -------------------------------------------------------
struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, kGpu); }
  c10::DeviceType type() const override { return kGpu.type(); }
  c10::Device exchangeDevice(c10::Device) const override { return kGpu; }
  c10::Device getDevice() const override { return kGpu; }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.index() <= 0, "CUDA error: invalid device ordinal");
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream s) const override { return s; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// ---- generators: the CPU's, which says that it is on the GPU ------------------------------------
struct Generator final : at::CPUGeneratorImpl {
  at::Generator inner = at::detail::createCPUGenerator(c10::default_rng_seed_val);
  bool stuck = false;  // in a capture that failed: with torch 2.6 it never ends for the generator
  Generator() {
    device_ = kGpu;
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::CUDA);
  }
  void set_current_seed(uint64_t seed) override { inner.set_current_seed(seed); }
  uint64_t current_seed() const override { return inner.current_seed(); }
  uint64_t seed() override { return inner.seed(); }
  void set_state(const c10::TensorImpl& s) override { inner.unsafeGetGeneratorImpl()->set_state(s); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override {
    auto* twin = new Generator;
    twin->inner = inner.clone();
    twin->stuck = stuck;
    return twin;
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    auto* state = static_cast<Generator*>(other.get());
    inner = state->inner;
    stuck = state->stuck;
  }
};
at::Generator new_generator() { return at::make_generator<Generator>(); }
// The device's own generator is the first that anybody makes: pretended_gpu.py does, and keeps it.
const at::Generator& own_generator() {
  static at::Generator own = new_generator();
  return own;
}
at::Generator& host_generator(const at::Generator& g) {
  auto* own = static_cast<Generator*>(g.unsafeGetGeneratorImpl());
  TORCH_CHECK(!own->stuck, "Offset increment outside graph capture encountered unexpectedly.");
  return own->inner;
}
}  // namespace

namespace at {
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  int getNumGPUs() const override { return 1; }
  bool isPinnedPtr(const void*) const override { return false; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &allocator; }
  const Generator& getDefaultGenerator(DeviceIndex = -1) const override { return own_generator(); }
  Generator getNewGenerator(DeviceIndex = -1) const override {
    static bool first = true;
    return std::exchange(first, false) ? own_generator() : new_generator();
  }
};
REGISTER_CUDA_HOOKS(CUDAHooks);
}  // namespace at

namespace {
// ---- tensors of the GPU as tensors of the CPU, and back -----------------------------------------
at::Tensor tensor_on(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto out = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  out.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  return out;
}
c10::Storage storage_of(c10::DataPtr data, c10::SymInt bytes, c10::Allocator* by) {
  using Impl = c10::StorageImpl;
  return c10::make_intrusive<Impl>(Impl::use_byte_size_t(), bytes, std::move(data), by, true);
}

struct Aliases {  // of one call: two views of a storage stay views of one storage
  std::unordered_map<const c10::StorageImpl*, c10::Storage> host, gpu;

  at::Tensor to_host(const at::Tensor& t) {
    if (!t.defined() || !t.is_cuda()) return t;
    auto& alias = host[t.storage().unsafeGetStorageImpl()];
    if (!alias) {
      c10::DataPtr data(t.storage().mutable_data(), nullptr, [](void*) {}, kHost);
      alias = storage_of(std::move(data), t.storage().sym_nbytes(), c10::GetAllocator(c10::DeviceType::CPU));
      gpu[alias.unsafeGetStorageImpl()] = t.storage();
    }
    auto out = tensor_on(alias, c10::DispatchKey::CPU, t);
    out._set_conj(t.is_conj());
    out._set_neg(t.is_neg());
    return out;
  }
  at::Tensor to_gpu(const at::Tensor& t) {
    if (!t.defined() || !t.device().is_cpu()) return t;
    auto& own = gpu[t.storage().unsafeGetStorageImpl()];
    if (!own) own = storage_of(adopt(t.storage()), t.storage().sym_nbytes(), &allocator);
    return tensor_on(own, c10::DispatchKey::CUDA, t);
  }
  // A kernel may have given what it writes to (`out=`) another size, and with it other memory.
  void settle(const at::Tensor& own, const at::Tensor& alias) {
    if (!own.defined() || !own.is_cuda()) return;
    if (own.storage().data() != alias.storage().data()) {
      gpu.erase(alias.storage().unsafeGetStorageImpl());
      own.unsafeGetTensorImpl()->set_storage_keep_dtype(to_gpu(alias).storage());
    }
    own.unsafeGetTensorImpl()->set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
  }
};

// Every tensor in `value`, changed by `f`: a tensor, a list of them, or of optional ones.
template <typename F>
void each_tensor(c10::IValue& value, F f) {
  if (value.isTensor()) {
    value = f(value.toTensor());
  } else if (value.isTensorList()) {
    std::vector<at::Tensor> many;
    for (const at::Tensor& t : value.toTensorVector()) many.push_back(f(t));
    value = many;
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> many;
    for (std::optional<at::Tensor> t : value.toOptionalTensorList())
      many.push_back(t ? std::optional<at::Tensor>(f(*t)) : std::nullopt);
    value = many;
  }
}

bool starts(const std::string& name, const char* with) { return name.rfind(with, 0) == 0; }

// ---- the rules that a GPU has and a CPU has not -------------------------------------------------
void check_devices(const std::string& name, const c10::FunctionSchema& schema, std::vector<c10::IValue> given) {
  bool indexing = starts(name, "aten::index.") || starts(name, "aten::index_put") ||
                  starts(name, "aten::_index_put_impl") || starts(name, "aten::_unsafe_index");
  std::optional<c10::Device> common;
  for (size_t i = 0; i < given.size(); i++) {
    const std::string& argument = schema.arguments()[i].name();
    if (indexing && argument == "indices") continue;
    each_tensor(given[i], [&](const at::Tensor& t) {
      bool free = !t.defined() || t.unsafeGetTensorImpl()->is_wrapped_number() ||
                  (t.dim() == 0 && t.device().is_cpu() && lenient.count(name));
      if (free) return t;
      if (!common) common = t.device();
      TORCH_CHECK(t.device() == *common, "Expected all tensors to be on the same device, but found at "
                  "least two devices, ", *common, " and ", t.device(), "! (when checking argument for "
                  "argument ", argument, " in method ", name, ")");
      return t;
    });
    if (given[i].isGenerator())
      TORCH_CHECK(given[i].toGenerator().device().is_cuda() && (!common || common->is_cuda()),
                  "Expected a '", common ? common->type() : kGpu.type(), "' device type for generator "
                  "but found '", given[i].toGenerator().device().type(), "'");
  }
}

// Operators whose result's shape depends on values: the host waits to know how much to allocate.
const std::unordered_set<std::string> kWaits{
    "aten::nonzero", "aten::nonzero.out", "aten::masked_select", "aten::masked_select.out", "aten::_unique2",
    "aten::unique_dim", "aten::unique_consecutive", "aten::bincount", "aten::equal", "aten::histc"};

void count_waits(const std::string& name, const std::vector<c10::IValue>& given) {
  if (kWaits.count(name) || (name == "aten::repeat_interleave.Tensor" && given[1].isNone())) wait_for(name);
  bool puts = starts(name, "aten::index_put") || starts(name, "aten::_index_put_impl");
  if (!puts && !starts(name, "aten::index.Tensor")) return;
  for (std::optional<at::Tensor> index : given[1].toOptionalTensorList()) {
    if (!index || !index->defined()) continue;
    bool mask = index->scalar_type() == at::kBool || index->scalar_type() == at::kByte;
    if (!mask && !index->is_cuda()) return wait_for(name + " with indices on the CPU");
    if (mask && puts && given[2].toTensor().numel() != 1) return wait_for(name + " with a mask");
  }
}

// ---- any operator -------------------------------------------------------------------------------
void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t n = schema.arguments().size(), begin = stack->size() - n;
  std::string name = schema.operator_name().name;
  if (!schema.operator_name().overload_name.empty()) name += "." + schema.operator_name().overload_name;
  operators++;
  const std::vector<c10::IValue> given(stack->begin() + begin, stack->end());
  check_devices(name, schema, given);
  count_waits(name, given);

  Aliases alias;
  for (size_t i = 0; i < n; i++) {
    auto& value = (*stack)[begin + i];
    each_tensor(value, [&](const at::Tensor& t) { return alias.to_host(t); });
    if (value.isDevice() && value.toDevice().is_cuda()) value = kHost;
    if (value.isGenerator()) value = host_generator(value.toGenerator());
    else if (value.isNone() && schema.arguments()[i].type()->str() == "Generator?")
      value = host_generator(own_generator());
  }
  const std::vector<c10::IValue> passed(stack->begin() + begin, stack->end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);

  auto written = [](const c10::Argument& a) { return a.alias_info() && a.alias_info()->isWrite(); };
  for (size_t i = 0; i < n; i++)
    if (written(schema.arguments()[i]) && given[i].isTensor())
      alias.settle(given[i].toTensor(), passed[i].toTensor());
  const size_t results = schema.returns().size(), first = stack->size() - results;
  for (size_t r = 0; r < results; r++) {
    auto& value = (*stack)[first + r];
    bool same = false;  // what an operator in place returns is its argument, not another tensor
    for (size_t i = 0; i < n && written(schema.returns()[r]) && !same; i++) {
      const auto& a = schema.arguments()[i];
      same = written(a) && given[i].isTensor() && *a.alias_info() == *schema.returns()[r].alias_info();
      if (same) value = given[i];
    }
    if (!same) each_tensor(value, [&](const at::Tensor& t) { return alias.to_gpu(t); });
  }
}

// ---- the few that know the device ---------------------------------------------------------------
at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!device || device->index() <= 0, "CUDA error: invalid device ordinal");
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator,
      c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(dtype));
}
at::Tensor& copy_(at::Tensor& self, const at::Tensor& from, bool non_blocking) {
  if (self.is_same(from)) return self;
  operators++;
  if (!self.is_cuda() && self.numel()) wait_for("copy to the CPU");
  if (!from.is_cuda() && self.numel() && !non_blocking) wait_for("copy from the CPU");
  Aliases alias;
  c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
  alias.to_host(self).copy_(alias.to_host(from));
  return self;
}
at::Scalar local_scalar_dense(const at::Tensor& self) {
  wait_for("item");
  return at::_local_scalar_dense(Aliases().to_host(self));
}
at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(source);
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}
at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  return set_storage(self, source, 0, {int64_t(source.nbytes() / self.itemsize())}, {1});
}
at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& from) {
  return set_storage(self, from.storage(), from.storage_offset(), from.sizes(), from.strides());
}
const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* tensor = self.unsafeGetTensorImpl();
  size_t bytes = (tensor->storage_offset() + c10::multiply_integers(size)) * self.itemsize();
  if (bytes > self.storage().nbytes()) {
    auto fresh = allocator.allocate(bytes);
    memcpy(fresh.get(), self.storage().data(), self.storage().nbytes());
    tensor->unsafe_storage().set_data_ptr_noswap(std::move(fresh));
    tensor->unsafe_storage().set_nbytes(bytes);
  }
  tensor->set_sizes_contiguous(size);
  return self;
}
at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
void assert_async(const at::Tensor& t) {
  operators++;
  TORCH_CHECK(Aliases().to_host(t).item().toBool(), "CUDA error: device-side assert triggered");
}
void assert_async_msg(const at::Tensor& t, std::string_view) { assert_async(t); }
}  // namespace

// The capture of a graph has failed that had registered this generator.
void capture_failed(const std::optional<at::Generator>& g) { static_cast<Generator*>(g->unsafeGetGeneratorImpl())->stuck = true; }
TORCH_LIBRARY(pretended, m) { m.def("capture_failed(Generator? g) -> ()", &capture_failed); }

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy_);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("resize_", &resize_);
  m.impl("as_strided", &as_strided);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("multinomial", &at::native::multinomial);  // one code for CPU and CUDA
  m.impl("_assert_async", &assert_async);
  m.impl("_assert_async.msg", &assert_async_msg);
}
