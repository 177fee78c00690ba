import Assent
import AssentServer
import Foundation
import HTTPTypes

/// The same payment through a proxy that ends TLS: plain, sealed, and sealed but changed on the way.
struct SealedScene: Sendable {
    private static let payee = "Carol"
    private static let transfer: JSONValue = ["to": .string(payee), "amount": "10.00", "currency": "EUR"]

    private let story: Story

    init(_ story: Story) { self.story = story }

    /// Tells of two apps of Ana's: both pin the bank's keys, and one seals its calls inside of TLS.
    func tell(with operating: Assent) async throws {
        story.narration.tell(
            .step(
                number: 11,
                title:
                    "A proxy ends TLS with the bank's own certificate: it reads a plain payment, not a sealed one"))
        let files = story.world.configuration.certificateFiles
        let proxy = try ReadingProxy(certificates: files.chain, privateKey: files.privateKey)
        story.world.relay.letEndTLS(proxy)
        // Connections that the story has already go past the proxy.
        let connections = try Story.connections(to: story.world, clock: story.clock, logger: story.logger)
        try await payPlainly(proxy, connections)
        let keys = try await makeKeys(operating)
        let assent = try story.makeAssent(vault: "sealed", over: connections) { configuration, _ in
            for url in [story.world.endpoints.server, story.gateway] {
                configuration.payloadEncryption[try Origin(url).description] = Assent.PayloadEncryption(keys: keys)
            }
        }
        try await paySealed(assent, proxy)
        try await changeInVain(assent, proxy)
        _ = await assent.signOut()
        await assent.shutdown()
        await connections.shutdown()
        story.world.relay.letEndTLS(nil)
        try await RotatedPinsScene(story).tell()
        try await intrude()
    }

    private func makeKeys(_ operating: Assent) async throws -> [Assent.PayloadEncryption.Key] {
        var keys: [Assent.PayloadEncryption.Key] = []
        for _ in 0..<2 {
            let reply = try await InstallationScene(story).administer(operating, "addPayloadKey", ["days": 365])
            let made = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["x"]?.string
            if let made { keys.append(try Assent.PayloadEncryption.Key(made)) }
        }
        story.check("the operator makes two keys for payload encryption; the app ships with them", keys.count == 2)
        return keys
    }

    private func payPlainly(_ proxy: ReadingProxy, _ connections: NIOTransport) async throws {
        let assent = try story.makeAssent(vault: "proxied", over: connections)
        try await story.signIn(assent, forcing: false)
        let reply = try await pay(assent)
        let token = try await remembered(assent)
        story.check("the plain app pays 10.00 to \(Self.payee): 201", reply.status == 201)
        story.check(
            "the proxy has read the path, the payee and the access token",
            proxy.hasRead("/transfers") && proxy.hasRead(Self.payee) && proxy.hasRead(token))
        _ = await assent.signOut()
        await assent.shutdown()
    }

    private func paySealed(_ assent: Assent, _ proxy: ReadingProxy) async throws {
        try await story.signIn(assent, forcing: false)
        proxy.forget()
        let reply = try await pay(assent)
        let token = try await remembered(assent)
        story.check("the sealed app pays the same: 201", reply.status == 201)
        story.check("the proxy has passed sealed messages on", proxy.hasRead("POST /assent-pe/1/message"))
        story.check(
            "it has read neither path nor payee nor token",
            !proxy.hasRead("/transfers") && !proxy.hasRead(Self.payee) && !proxy.hasRead(token))
    }

    private func changeInVain(_ assent: Assent, _ proxy: ReadingProxy) async throws {
        let before = try await story.balance(assent)
        story.narration.tell(.note(.thief, "changes one bit of the next sealed payment on its way"))
        proxy.changeNext(.request)
        let isRefused: Bool
        do {
            isRefused = try await pay(assent).status >= 400
        } catch {
            isRefused = true
        }
        let after = try await story.balance(assent)
        story.check("the changed payment does not open at the gateway: nothing is paid", isRefused && after == before)
        story.narration.tell(.note(.thief, "changes one bit of the next sealed reply"))
        proxy.changeNext(.reply)
        let again = try await story.balance(assent)
        story.check(
            "the changed reply is not believed: the app asks again", again == before)
    }

    /// Another program that links the SDK, `assent request`: alone, with a library that somebody has loaded into it,
    /// and with a debugger attached.
    private func intrude() async throws {
        let place = URL(fileURLWithPath: story.world.directory).appending(path: "guarded.yaml")
        let file = story.world.app.file + "\nintegrity: {debugger: refuse, preload: refuse, rooted: report}\n"
        try Data(file.utf8).write(to: place, options: .atomic)
        let assent = story.world.programs.appending(path: "assent").path
        func ask(behind tracer: String? = nil, _ environment: [String: String] = [:]) async throws -> [String] {
            let words = ["request", "--as", "nobody", "GET", "/status", "--config", place.path]
            let asking = try ChildProcess(
                tracer ?? assent, tracer == nil ? words : [assent] + words,
                environment: environment.merging(["HOME": story.world.directory]) { $1 }, readsErrors: true)
            var lines: [String] = []
            while let line = await asking.line() { lines.append(line) }
            await asking.ended()
            return lines
        }
        func isStopped(_ lines: [String]) -> Bool {
            lines.contains { $0.contains("Nothing was sent") } && !lines.contains { $0.contains("isOpen") }
        }
        let usual = try await ask()
        story.check(
            "assent request asks whether the bank is open, and is told", usual.contains { $0.contains("isOpen") })
        story.check(
            "with a library that was loaded into it: nothing is sent, and it says why",
            isStopped(try await ask(["LD_PRELOAD": "libm.so.6"])))
        let tracer = story.world.programs.appending(path: "CTracer").path
        guard FileManager.default.isExecutableFile(atPath: tracer) else {
            return story.narration.tell(.note(.app, "A debugger is not tried: CTracer is not beside assent."))
        }
        story.check("with a debugger attached: the same", isStopped(try await ask(behind: tracer)))
    }

    private func pay(_ assent: Assent) async throws -> HTTPReply {
        try await assent.send(.post(story.transfers, json: Self.transfer)) { try story.answer(&$0) }
    }

    /// The secret part of the app's access token.
    private func remembered(_ assent: Assent) async throws -> String {
        let token = try await assent.tokens.tokens().accessToken
        story.remember("access token", token.signature)
        return token.signature.reveal()
    }
}
