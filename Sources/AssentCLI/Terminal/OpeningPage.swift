import AssentCore
import CoreFoundation
import Foundation

/// A page on disk that leads a browser on to an address: all users of a machine can read a program's arguments, and
/// someone who knows the address of a sign-in or a sign-out can use it in the user's place.
struct OpeningPage: Sendable {
    /// Where it is. Only this user can read it.
    let path: String

    /// The status with which the program that opens it has ended; `nil` while it runs.
    let openerStatus = Locked<Int32?>(nil)

    /// A browser that runs has read the page by then. There may be other readers before it: what looks for the kind of
    /// the file.
    private static let shortestTime: TimeInterval = 5

    /// A browser that has to start first has read it by then. Not all disks say when a file was read.
    private static let longestTime: TimeInterval = 30

    private let directory: String

    /// Writes one that leads to `url`, in `$XDG_RUNTIME_DIR` where there is one of this user's own.
    init(leadingTo url: String, environment: [String: String]) throws {
        var base = NSTemporaryDirectory()
        if let runtime = environment["XDG_RUNTIME_DIR"], Self.isOwn(runtime) { base = runtime }
        directory = "\(base)/assent-\(SystemRandom().token(byteCount: 9))"
        path = directory + "/sign-in.html"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let written = FileManager.default.createFile(
            atPath: path, contents: Data(Self.page(url).utf8), attributes: [.posixPermissions: 0o600])
        guard written else {
            remove()
            throw CocoaError(.fileWriteUnknown)
        }
    }

    /// Whether a directory is this user's, and nobody else could exchange what is in it: after `su` it can be another
    /// user's, and some systems leave it open to all.
    private static func isOwn(_ directory: String) -> Bool {
        var status = stat()
        guard directory.hasPrefix("/"), stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
            status.st_uid == geteuid(), status.st_mode & 0o022 == 0
        else { return false }
        return access(directory, W_OK | X_OK) == 0
    }

    /// Removes it.
    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    /// Waits until a browser has had the time to read it, and removes it. The program that opens it may have ended long
    /// before, and may go on for as long as the browser.
    ///
    /// - Parameter clock: where the time comes from.
    /// - Returns: `false` when the program that opens it has failed, so that no browser has it.
    func removeOnceRead(clock: any WallClock = SystemClock()) async -> Bool {
        defer { remove() }
        let began = clock.now
        let isOpened = try? await clock.poll(until: began.addingTimeInterval(Self.longestTime)) { () -> Bool? in
            if let status = openerStatus.withLock({ $0 }), status != 0 { return false }
            return clock.now.timeIntervalSince(began) >= Self.shortestTime && wasRead ? true : nil
        }
        return isOpened ?? true
    }

    /// Whether the disk says that it was read after it was written.
    private var wasRead: Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return true }
        #if canImport(Darwin)
        let (read, written) = (status.st_atimespec, status.st_mtimespec)
        #else
        let (read, written) = (status.st_atim, status.st_mtim)
        #endif
        return (read.tv_sec, read.tv_nsec) > (written.tv_sec, written.tv_nsec)
    }

    private static func page(_ url: String) -> String {
        // An apostrophe would end the address where a browser reads it.
        let address = DisplayText.escapedForHTML(url.replacing("'", with: "%27"))
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
            <meta http-equiv="refresh" content="0; url='\(address)'"><title>Assent</title></head>
            <body><p><a href="\(address)">Go on</a></p></body></html>

            """
    }
}
