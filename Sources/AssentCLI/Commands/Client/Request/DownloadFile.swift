import AssentCore
import Foundation

/// The file that `--download` names. The content is written to a file beside it that only this user may read, which
/// gets the name once it is complete: whoever looks sees the old file, the new one, or none.
struct DownloadFile {
    private let path: String

    /// How much is written between two drawings of the bar.
    private static let piece = 256 << 10

    init(_ path: String) { self.path = path }

    /// Refuses a place where nothing could be written, before anything is sent.
    func check() throws {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            throw CommandFailure("\(path) is a directory. Nothing was sent.")
        }
        guard access(directory, W_OK | X_OK) == 0 else { throw unwritable(errno, "Nothing was sent.") }
    }

    /// Writes the content. A progress bar is drawn where standard error is a terminal.
    func write(_ content: [UInt8], _ console: Console) throws {
        let temporary = "\(directory)/.\(name.prefix(100)).\(SystemRandom().token(byteCount: 9))"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unwritable(errno) }
        do {
            defer { close(descriptor) }
            try write(content, to: descriptor, ProgressBar(console, total: content.count))
            guard fsync(descriptor) == 0, rename(temporary, path) == 0 else { throw unwritable(errno) }
        } catch {
            unlink(temporary)
            throw error
        }
        console.say("\(path) has \(content.count) bytes.")
    }

    private func write(_ content: [UInt8], to descriptor: Int32, _ bar: ProgressBar) throws {
        var rest = content[...]
        defer { bar.end() }
        while !rest.isEmpty {
            let written = rest.prefix(Self.piece).withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress, $0.count)
            }
            if written < 0 {
                guard errno == EINTR else { throw unwritable(errno) }
            } else {
                rest = rest.dropFirst(written)
                bar.draw(content.count - rest.count)
            }
        }
    }

    private var url: URL { URL(fileURLWithPath: path) }
    private var name: String { url.lastPathComponent }
    private var directory: String { url.deletingLastPathComponent().path }

    private func unwritable(_ number: Int32, _ advice: String = "The request was sent, and its reply is lost.")
        -> CommandFailure
    {
        CommandFailure("\(path) cannot be written: \(String(cString: strerror(number))). \(advice)")
    }
}
