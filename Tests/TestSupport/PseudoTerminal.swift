import AssentCore
import CSpawn
import Foundation

/// A terminal at which a test sits.
package final class PseudoTerminal: Sendable {
    /// Its path.
    package let name: String

    /// What is written after a program's last words, so that who waits for other ones hears that they do not come.
    private static let end = Array("\0its end\0".utf8)

    private let person: Int32
    private let line: Int32
    private let shown = Watched<(bytes: [UInt8], isOver: Bool)>(([], false))
    private let seen = Locked(0)

    /// A terminal that nothing runs at yet.
    package init() throws {
        var ends: [Int32] = [-1, -1]
        var path = [CChar](repeating: 0, count: 128)
        let error = cspawn_terminal(&ends, &path, path.count)
        guard error == 0 else { throw SpawnFailure(description: "no terminal: \(String(cString: strerror(error)))") }
        name = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        (person, line) = (ends[0], ends[1])
        let (descriptor, shown) = (ends[0], shown)
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(descriptor, &bytes, bytes.count)
                if count <= 0 { break }
                let new = Array(bytes.prefix(count))
                shown.update { shown in
                    let start = max(0, shown.bytes.count - Self.end.count)
                    shown.bytes += new
                    guard let range = shown.bytes[start...].firstRange(of: Self.end) else { return }
                    shown.bytes.removeSubrange(range)
                    shown.isOver = true
                }
            }
            close(descriptor)
        }
    }

    /// Nobody holds the other end any more, which ends the reading.
    deinit { close(line) }

    /// All that was shown.
    package var text: String { String(decoding: shown.value.bytes, as: UTF8.self) }

    /// Whether what is typed is shown.
    package var echoes: Bool {
        var settings = termios()
        return tcgetattr(line, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Types.
    package func type(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(person, bytes, bytes.count)
    }

    /// Says that the program has ended.
    func programHasEnded() { _ = write(line, Self.end, Self.end.count) }

    /// Waits until `text` is shown, after what was waited for before.
    ///
    /// - Throws: ``SpawnFailure``: the program has ended without it.
    package func wait(for text: String) async throws {
        let wanted = Array(text.utf8)
        let start = seen.withLock { $0 }
        await shown.wait { $0.isOver || Self.end(of: wanted, in: $0.bytes, from: start) != nil }
        guard let end = Self.end(of: wanted, in: shown.value.bytes, from: start) else {
            throw SpawnFailure(description: "the program has ended, and has not shown \"\(text)\": \(self.text)")
        }
        seen.withLock { $0 = end }
    }

    private static func end(of wanted: [UInt8], in shown: [UInt8], from start: Int) -> Int? {
        guard start <= shown.count, let range = shown[start...].firstRange(of: wanted) else { return nil }
        return range.upperBound
    }
}
