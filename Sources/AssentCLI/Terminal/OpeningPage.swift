import AssentCore
import Foundation

/// A page on disk that leads a browser on to an address: all users of a machine can read a program's arguments, and
/// someone who knows the address of a sign-in or a sign-out can use it in the user's place.
struct OpeningPage: Sendable {
    /// Where it is. Only this user can read it.
    let path: String

    private let directory: String

    /// Writes one that leads to `url`, in `$XDG_RUNTIME_DIR` where there is one.
    init(leadingTo url: String, environment: [String: String]) throws {
        var base = NSTemporaryDirectory()
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/"),
            FileManager.default.isWritableFile(atPath: runtime)
        {
            base = runtime
        }
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

    /// Removes it.
    func remove() { try? FileManager.default.removeItem(atPath: directory) }

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
