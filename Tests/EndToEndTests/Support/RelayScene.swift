import AssentCore
import AssentPayload
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import Assent
@testable import AssentDemo

/// A story with a service that keeps what it was asked, who ends TLS before it, and clients that seal.
struct RelayScene: Sendable {
    static let handshake = "/assent-pe/1/handshake"
    static let message = "/assent-pe/1/message"
    static let target = "/open/pay?to=bob"
    static let content = Array("amount=200.00".utf8)

    /// What a call has come to for the app that makes it.
    enum Outcome: Hashable {
        /// With the reply that the service has given to this very call.
        case answered
        /// With an error that says that the server may have acted.
        case unknown
        /// With an error that says that nothing was sent.
        case notSent
        case other(String)
    }

    let story: Story
    let ender: TLSEnder
    let ledger: LedgerService
    let keys: [PayloadKey]

    /// Who proves a registered key in handshakes; `nil` in a world whose clients are of the role `app`.
    var prover: InstallationProver?

    /// Runs `body` in such a story; with `registering` its clients are of an installation that has registered.
    static func run(registering: Bool = false, _ body: (RelayScene) async throws -> Void) async throws {
        try await TLSEnder.run { ender in
            try await LedgerService.run { ledger in
                try await World.run(
                    logger: CollectingLog().logger, editing: ledger.routed, configuring: { ender.place(&$0) }
                ) { story in
                    try ender.join(story)
                    let keyring = try await PayloadKeyring(story)
                    let keys = [try await keyring.add(), try await keyring.add()].map(\.key)
                    var scene = RelayScene(story: story, ender: ender, ledger: ledger, keys: keys)
                    guard registering else {
                        try await body(scene)
                        return await keyring.shutdown()
                    }
                    let token = try await keyring.initialAccessToken()
                    let installation = try story.makeAssent(vault: "installation") { configuration, provider in
                        configuration.client.id = InstallationScene.app
                        configuration.registration = RegistrationConfiguration(
                            keys: provider, initialAccessToken: token)
                    }
                    _ = try await installation.registration?.register()
                    let prover = InstallationProver()
                    prover.attach(installation.tokens.registration)
                    scene.prover = prover
                    try await body(scene)
                    await installation.shutdown()
                    await keyring.shutdown()
                }
            }
        }
    }

    /// Lets time pass, in seconds.
    func pass(_ seconds: TimeInterval) { story.clock.advance(by: seconds) }

    /// A client without a session. For the server time has passed in which it may make handshakes.
    func client() throws -> PayloadTransport {
        pass(10)
        let settings = PayloadSettings(
            origin: try Origin(ender.url), app: "bank", version: "1.0", platform: "linux")
        return PayloadTransport(
            ender.pinned,
            origins: [
                PayloadOrigin(
                    settings, keys: keys.map { .init($0, notAfter: .distantFuture) }, prover: prover,
                    over: ender.pinned, seams: PayloadSeams(clock: story.clock, random: SystemRandom()))
            ])
    }

    func call(_ client: PayloadTransport, _ method: HTTPRequest.Method) async -> Outcome {
        await Self.call(client, method, url: ender.url, ledger)
    }

    /// Pays, or asks, at the gateway of an address.
    static func call(
        _ client: any HTTPTransport, _ method: HTTPRequest.Method, url: String, _ ledger: LedgerService
    ) async -> Outcome {
        let content = method == .post ? content : []
        do {
            let reply = try await client.send(
                try HTTPCall(
                    method, url: url + target, headerFields: method == .post ? [.contentType: "text/plain"] : [:],
                    body: method == .post ? HTTPBody(content) : nil))
            let bytes = try await reply.body.collect(upTo: 1 << 20)
            let isRight = reply.status == 200 && bytes == ledger.answer(to: content)
            return isRight ? .answered : .other("\(reply.status): \(String(decoding: bytes, as: UTF8.self))")
        } catch let error as HTTPTransportError {
            return error.mayHaveHadEffect ? .unknown : .notSent
        } catch {
            return .other("\(error)")
        }
    }

    /// How often the call was executed since there were `before` entries; `nil` when something else was, too.
    func runs(_ method: HTTPRequest.Method, since before: Int) -> Int? {
        Self.runs(method, in: ledger, since: before)
    }

    static func runs(_ method: HTTPRequest.Method, in ledger: LedgerService, since before: Int) -> Int? {
        let entries = ledger.entries.dropFirst(before)
        let asked = LedgerService.Entry(
            method: method.rawValue, target: target, type: method == .post ? "text/plain" : nil,
            body: method == .post ? content : [])
        return entries.allSatisfy { $0 == asked } ? entries.count : nil
    }

    /// Does something to the next request at a path alone.
    static func next(_ path: String, _ meddle: @escaping TLSEnder.Meddler) -> TLSEnder.Meddler {
        let isDone = Locked(false)
        return { asked, pass in
            let isNext = isDone.withLock { isDone in
                guard !isDone, asked.head.path == path else { return false }
                isDone = true
                return true
            }
            return try await isNext ? meddle(asked, pass) : pass(asked)
        }
    }
}
