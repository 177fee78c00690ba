/// Looks at this process, without the network, for one kind of interference. It is asked before each call, so it must
/// be quick and keep nothing.
///
/// Who controls the process defeats every probe: a probe stops the tools that are used as they come, and nothing more.
///
/// ```swift
/// struct Emulator: IntegrityProbe {
///     let kind = IntegrityKind.rooted
///     let isEmulated: @Sendable () -> Bool
///     func finding() -> String? { isEmulated() ? "The device is emulated." : nil }
/// }
/// configuration.integrity.probes = IntegrityProbes.platform + [Emulator(isEmulated: isEmulated)]
/// ```
public protocol IntegrityProbe: Sendable {
    /// What it looks for, which decides what happens when it finds something.
    var kind: IntegrityKind { get }

    /// What was found, as a sentence for people that holds no secret; `nil` when nothing was. What cannot be looked at
    /// is a finding, too.
    func finding() -> String?
}

/// What a probe looks for.
public enum IntegrityKind: String, Sendable, Hashable, CaseIterable {
    /// A debugger, or another program that traces this process.
    case debugger
    /// Libraries that somebody else has brought into this process.
    case preload
    /// Protection of the device that is gone: the program has become root, or others may change files of the app.
    case rooted
}

/// What happens when a probe finds something. The later ones are the stricter ones.
public enum IntegrityControl: String, Sendable, Hashable, CaseIterable, Comparable {
    /// It is not looked for.
    case off
    /// It is reported once, and calls leave.
    case report
    /// No call leaves.
    case refuse

    /// Whether the first one is less strict.
    public static func < (left: IntegrityControl, right: IntegrityControl) -> Bool {
        left != right && (left == .off || right == .refuse)
    }
}

/// What happens for each kind of finding.
///
/// ```swift
/// let controls = IntegrityControls(debugger: .refuse, preload: .refuse, rooted: .report)
/// ```
public struct IntegrityControls: Sendable, Hashable {
    /// For a debugger.
    public var debugger: IntegrityControl
    /// For libraries of others.
    public var preload: IntegrityControl
    /// For a device whose protection was taken away.
    public var rooted: IntegrityControl

    /// Reports what is found, unless it is said otherwise.
    public init(
        debugger: IntegrityControl = .report, preload: IntegrityControl = .report, rooted: IntegrityControl = .report
    ) {
        self.debugger = debugger
        self.preload = preload
        self.rooted = rooted
    }

    /// What happens for one kind.
    public subscript(kind: IntegrityKind) -> IntegrityControl {
        switch kind {
        case .debugger: debugger
        case .preload: preload
        case .rooted: rooted
        }
    }

    /// The stricter one of both, for each kind.
    package func tightened(by other: IntegrityControls) -> IntegrityControls {
        IntegrityControls(
            debugger: max(debugger, other.debugger), preload: max(preload, other.preload),
            rooted: max(rooted, other.rooted))
    }
}
