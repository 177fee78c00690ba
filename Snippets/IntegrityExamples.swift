// The examples about probes: Scripts/check_examples.py compares what stands between the marks.
import Assent

func probing(_ configuration: inout Assent.Configuration) {
    // snippet: integrity begin
    configuration.integrity.controls = .init(debugger: .refuse, preload: .refuse, rooted: .report)
    configuration.integrity.allowedPreloads = ["/usr/lib/libjemalloc.so.2"]
    // snippet: integrity end
}

func controls() -> IntegrityControls {
    // snippet: integrity-controls begin
    let controls = IntegrityControls(debugger: .refuse, preload: .refuse, rooted: .report)
    // snippet: integrity-controls end
    return controls
}

func probing(_ configuration: inout Assent.Configuration, isEmulated: @escaping @Sendable () -> Bool) {
    // snippet: integrity-probe begin
    struct Emulator: IntegrityProbe {
        let kind = IntegrityKind.rooted
        let isEmulated: @Sendable () -> Bool
        func finding() -> String? { isEmulated() ? "The device is emulated." : nil }
    }
    configuration.integrity.probes = IntegrityProbes.platform + [Emulator(isEmulated: isEmulated)]
    // snippet: integrity-probe end
}
