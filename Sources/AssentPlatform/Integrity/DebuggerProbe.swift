#if os(Linux)
package import AssentCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Finds a program that traces this process: `TracerPid` of `/proc/self/status` is its number, and 0 for none.
package struct DebuggerProbe: IntegrityProbe {
    package let kind = IntegrityKind.debugger
    private let path: String
    /// The file stays open, and is read for each question: who traces this process may change between two.
    private let file: KeptFile?
    /// Which process has opened it: one that is forked later has the file of its parent.
    private let opener = getpid()
    /// Which process it was about then.
    private let process: Int?

    /// - Parameter status: the file.
    package init(status: String = "/proc/self/status") {
        path = status
        file = KeptFile(status)
        process = file.flatMap(Self.status)?.process
    }

    package func finding() -> String? {
        guard let status = keptStatus ?? newStatus else {
            return "It cannot be seen whether another program traces this process."
        }
        return status.isTraced ? "Another program traces this process." : nil
    }

    /// What the open file says; `nil` unless it is still the one that was opened.
    private var keptStatus: ProcessStatus? {
        guard let file, let process, getpid() == opener, let status = Self.status(file), status.process == process
        else { return nil }
        return status
    }

    private static func status(_ file: KeptFile) -> ProcessStatus? {
        file.reading(upTo: ProcessStatus.limit) { ProcessStatus($0) }
    }

    private var newStatus: ProcessStatus? {
        guard case .bytes(let bytes, _) = BoundedFile(path, upTo: ProcessStatus.limit) else { return nil }
        return bytes.withUnsafeBytes { ProcessStatus($0) }
    }
}
#endif
