import Assent
import Foundation

/// Signs in through a browser: opens one where there is a display, always says where to go, and takes the address that
/// a browser on another machine ended at.
struct BrowserLogin: Sendable {
    let console: Console
    var environment = ProcessInfo.processInfo.environment

    func run(_ assent: Assent, timeout: Int, username: String?) async throws -> Assent.User {
        let page = Locked<OpeningPage?>(nil)
        defer { page.withLock { $0?.remove() } }
        let receiver = try await LoopbackRedirectReceiver.listening(
            at: assent.configuration.client.redirectURI, timeout: TimeInterval(timeout)
        ) { url in
            show(url)
            if let command = opener { page.withLock { $0 = open(url, with: command) } }
        }
        if isatty(STDIN_FILENO) == 1 { takePasted(receiver) }
        return try await assent.signIn(
            through: receiver, parameters: username.map { [.init("login_hint", $0)] } ?? [])
    }

    private func show(_ url: String) {
        console.say("Sign in here, within the time that there is:")
        console.say("")
        console.say("  " + DisplayText.escapedForTerminal(url))
        console.say("")
        if isatty(STDIN_FILENO) == 1 {
            console.say(
                "If that browser is on another machine, it ends at an address that it cannot open: paste it here.")
        }
    }

    /// The program that opens a browser; `nil` where there is no display.
    var opener: String? {
        guard environment["DISPLAY"]?.isEmpty == false || environment["WAYLAND_DISPLAY"]?.isEmpty == false else {
            return nil
        }
        return (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/xdg-open" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Opens an address with a program that opens a browser. The page that leads there must stay until the browser has
    /// read it.
    func open(_ url: String, with command: String) -> OpeningPage? {
        let process = Process()
        do {
            let page = try OpeningPage(leadingTo: url, environment: environment)
            process.executableURL = URL(fileURLWithPath: command)
            process.arguments = [page.path]
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            process.terminationHandler = { [status = page.openerStatus] process in
                let ended = process.terminationStatus
                status.withLock { $0 = ended }
            }
            do { try process.run() } catch {
                page.remove()
                throw error
            }
            return page
        } catch {
            console.warn("No browser could be opened: \(error.localizedDescription)")
            return nil
        }
    }

    /// Reads lines beside the wait. The thread stays in its reading until the program ends.
    private func takePasted(_ receiver: LoopbackRedirectReceiver) {
        Thread.detachNewThread {
            while let line = try? TerminalInput().line() {
                let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces)
                if text.isEmpty { continue }
                if receiver.deliver(text) { return }
                console.warn("That is not the address at which this sign-in ends.")
            }
        }
    }
}
