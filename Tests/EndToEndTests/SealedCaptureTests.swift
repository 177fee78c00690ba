import Assent
import AssentCore
import AssentPayload
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo

/// What somebody reads who ends TLS with a certificate that the app pins: everything of a plain call, and nothing of a
/// sealed one.
@Suite("Payload encryption: a capture where TLS ends")
struct SealedCaptureTests {
    /// Texts that stand in one run of calls alone.
    private struct Canaries {
        let path = SystemRandom().token()
        let query = SystemRandom().token()
        let field = SystemRandom().token()
        let body = SystemRandom().token()
        /// The access token's part that nobody else has.
        var token = ""

        /// With what stands in replies of a service: in each, in errors, and at the end of streams.
        func all(_ ledger: LedgerService) -> [(name: String, text: String)] {
            [
                ("path", path), ("query", query), ("field", field), ("body", body), ("token", token),
                ("reply", ledger.receipt), ("error", ledger.refusal), ("stream", ledger.ending),
            ]
        }
    }

    /// The names of the texts that were found on the way to the server, and on the way back.
    private func found(
        _ canaries: [(name: String, text: String)], in ender: TLSEnder
    ) -> (asked: Set<String>, told: Set<String>) {
        let asked = ender.arrived.map(\.bytes)
        let told = ender.passed.map(\.told.bytes)
        func names(_ messages: [[UInt8]]) -> Set<String> {
            Set(
                canaries.filter { _, text in
                    // Also as it would be in JSON that has bytes.
                    let forms = [Array(text.utf8), Array(Base64URL.encode(Array(text.utf8)).utf8)]
                    return messages.contains { bytes in forms.contains { bytes.firstRange(of: $0) != nil } }
                }.map(\.name))
        }
        return (names(asked), names(told))
    }

    /// How long the plaintext of a frame is, with its padding; `nil` for what is no frame.
    private func plaintextLength(_ frame: [UInt8]) -> Int? {
        guard (try? FrameHead(frame.prefix(FrameHead.length))) != nil else { return nil }
        var rest = frame.dropFirst(FrameHead.length)
        var total = 0
        while !rest.isEmpty {
            guard rest.count >= 5 + 16 else { return nil }
            let length = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard length >= 16, rest.count >= 5 + length else { return nil }
            total += length - 16
            rest = rest.dropFirst(5 + length)
        }
        return total
    }

    @Test(
        "37: Path, field, body, token and reply are found in the plain run, and none of them either way in the sealed one"
    )
    func capture() async throws {
        try await TLSEnder.run { ender in
            try await LedgerService.run { ledger in
                try await World.run(
                    logger: CollectingLog().logger, watching: ender.watching, editing: ledger.routed,
                    configuring: { ender.place(&$0) }
                ) { story in
                    try ender.join(story)
                    let keyring = try await PayloadKeyring(story)
                    let keys = [try await keyring.add(), try await keyring.add()]
                    // The control: it reads all of a plain call.
                    let plain = try await run(story, ender, ledger, keys: [])
                    #expect(plain.asked == ["path", "query", "field", "body", "token"])
                    // The service gives the content back.
                    #expect(plain.told == ["body", "reply", "error", "stream"])
                    let statuses = Set(ender.passed.map(\.told.head.status.code))
                    #expect(statuses.isSuperset(of: [200, 400]) && statuses.count > 2, "\(statuses)")
                    #expect(!ender.arrived.contains { $0.head.path?.hasPrefix("/assent-pe") == true })

                    let sealed = try await run(story, ender, ledger, keys: keys)
                    #expect(sealed.asked.isEmpty && sealed.told.isEmpty, "\(sealed)")
                    check(ender)
                    await keyring.shutdown()
                }
            }
        }
    }

    /// A content of which nobody says before how long it is.
    private static func stream(_ bytes: [UInt8]) -> HTTPBody {
        HTTPBody(length: nil, isReplayable: true) {
            let left = Locked(bytes[...])
            return {
                left.withLock { left -> [UInt8]? in
                    guard !left.isEmpty else { return nil }
                    defer { left = left.dropFirst(1_000) }
                    return Array(left.prefix(1_000))
                }
            }
        }
    }

    /// Signs in, makes calls with small and with large content and with streams both ways, some of them refused by the
    /// service and one by the gateway, and looks for what they have.
    private func run(
        _ story: Story, _ ender: TLSEnder, _ ledger: LedgerService, keys: [Assent.PayloadEncryption.Key]
    ) async throws -> (asked: Set<String>, told: Set<String>) {
        ender.clear()
        let assent = try story.makeAssent(vault: keys.isEmpty ? "plain" : "sealed") { configuration, _ in
            configuration.resources = [story.gateway: .accessToken(of: [.user])]
            configuration.resourceBase = story.gateway
            if !keys.isEmpty { try configuration.seal(story, with: keys) }
        }
        try await story.signIn(assent, forcing: true)
        var canaries = Canaries()
        canaries.token = try await assent.tokens.tokens().accessToken.signature.reveal()
        let user = assent.userClient
        let asked = try await user.sendAuthenticatedRequest(
            .get("ledger/\(canaries.path)", parameters: ["to": .string(canaries.query)]))
        #expect(asked.status == 200 && asked.data == ledger.answer(to: []))
        for count in [0, 100_000] {
            let content = Array(canaries.body.utf8) + [UInt8](repeating: 0x61, count: count)
            func post(_ path: String, _ body: HTTPBody) -> ResourceRequest {
                ResourceRequest(
                    path: path, method: .post, body: body,
                    headers: [.contentType: "text/plain", .acceptLanguage: canaries.field])
            }
            for body in [HTTPBody(content), Self.stream(content)] {
                let paid = try await user.sendAuthenticatedRequest(post("ledger/pay", body))
                #expect(paid.status == 200 && paid.data == ledger.answer(to: content))
                let refused = try await user.sendAuthenticatedRequest(post("ledger/refused", body))
                #expect(refused.status == 400 && refused.data == Array(ledger.refusal.utf8) + content)
                let streamed = try await user.sendAuthenticatedRequest(post("ledger/streamed", body))
                #expect(streamed.status == 200)
                #expect(streamed.data == ledger.answer(to: content) + Array(ledger.ending.utf8))
            }
        }
        // No policy allows it.
        let denied = try await user.sendAuthenticatedRequest(.delete("ledger/denied"))
        #expect(denied.status == 403)
        await assent.shutdown()
        return found(canaries.all(ledger), in: ender)
    }

    /// What is left to see: handshakes and messages, whose lengths are padded ones.
    private func check(_ ender: TLSEnder) {
        let paths = Set(ender.arrived.map { $0.head.path ?? "" })
        #expect(paths == ["/assent-pe/1/handshake", "/assent-pe/1/message"])
        let messages = ender.passed.filter { $0.asked.head.path == "/assent-pe/1/message" }
        #expect(messages.count >= 14)
        for (asked, told) in messages {
            #expect(told.head.status == .ok)
            for frame in [asked.body, told.body] {
                let length = plaintextLength(frame)
                #expect(length != nil && length == length.map(Padding.length), "\(frame.count)")
            }
            #expect(asked.head.headerFields[.authorization] == nil && asked.head.headerFields[.cookie] == nil)
        }
    }
}
