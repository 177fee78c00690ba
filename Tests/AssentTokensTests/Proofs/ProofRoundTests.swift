import AssentCore
import HTTPTypes
import Testing

@testable import AssentTokens

@Suite("Nonces") struct ProofRoundTests {
    @Test("A request is sent again once, and only with a nonce that it did not have")
    func round() {
        var round = ProofRound(nonce: "a")
        var copy = round
        #expect(!copy.answered(wantsNonce: false, given: "b") && copy.nonce == "a")
        #expect(!copy.answered(wantsNonce: true, given: nil) && !copy.answered(wantsNonce: true, given: "a"))
        #expect(round.answered(wantsNonce: true, given: "b") && round.nonce == "b")
        #expect(!round.answered(wantsNonce: true, given: "c") && round.nonce == "b")
        var stream = ProofRound(nonce: nil, mayRepeat: false)
        let isSentAgain = stream.answered(wantsNonce: true, given: "b")
        #expect(!isSentAgain)
    }

    @Test("Without an answer only what is harmless is sent again, once, and a nonce may still be asked for after that")
    func unanswered() {
        for (mayRepeat, isHarmless) in [(true, false), (false, true)] {
            var round = ProofRound(nonce: "a", mayRepeat: mayRepeat, isHarmless: isHarmless)
            let isSentAgain = round.hadNoReply()
            #expect(!isSentAgain)
        }
        var round = ProofRound(nonce: "a", isHarmless: true)
        let sendings = [round.hadNoReply(), round.answered(wantsNonce: true, given: "b"), round.hadNoReply()]
        #expect(sendings == [true, true, false] && round.nonce == "b")
    }

    private func server(_ origin: String, _ role: NonceMemory.Server.Role) throws -> NonceMemory.Server {
        NonceMemory.Server(origin: try Origin(origin), role: role)
    }

    @Test("Each server has its newest nonce, and the memory is bounded")
    func memory() throws {
        let memory = NonceMemory()
        let servers = try (0...NonceMemory.serverLimit).map { try server("https://h\($0).example", .resource) }
        memory.take(from: [.dpopNonce: "old"], of: servers[1])
        for (index, server) in servers.enumerated() { memory.take(from: [.dpopNonce: "n\(index)"], of: server) }
        #expect(memory.newest(for: servers[0]) == nil)
        for index in 1...NonceMemory.serverLimit { #expect(memory.newest(for: servers[index]) == "n\(index)") }
        #expect(memory.newest(for: try server("https://h1.example:8443", .resource)) == nil)
        #expect(memory.newest(for: try server("https://h1.example", .authorizationServer)) == nil)
        #expect(memory.take(from: [:], of: servers[1]) == nil && memory.newest(for: servers[1]) == "n1")
    }

    @Test("An authorization server and a resource behind one origin keep each other's nonce")
    func roles() throws {
        let memory = NonceMemory()
        let (first, second) = (
            try server("https://bank.example", .authorizationServer), try server("https://bank.example", .resource)
        )
        memory.take(from: [.dpopNonce: "server"], of: first)
        memory.take(from: [.dpopNonce: "resource"], of: second)
        memory.take(from: [.dpopNonce: "newer"], of: first)
        #expect(memory.newest(for: first) == "newer" && memory.newest(for: second) == "resource")
    }

    @Test("Challenges are read whatever the case of the scheme, and wherever they stand")
    func challenges() {
        let cases: [(String, ResourceRefusal?)] = [
            (#"DPoP error="use_dpop_nonce""#, .nonce), (#"dpop algs="ES256", error=use_dpop_nonce"#, .nonce),
            (#"Bearer, DPoP error="use_dpop_nonce""#, .nonce), (#"DPOP error="invalid_dpop_proof""#, .proof),
            (#"DPoP error="invalid_token""#, .token), (#"bearer error="invalid_token""#, .token),
            (#"DPoP error="insufficient_scope""#, nil), (#"Basic error="use_dpop_nonce""#, nil), ("DPoP", nil),
            (#"DPoP error="use_dpop_nonce"#, nil), (#"Bearer error="use_dpop_nonce""#, nil),
            (#"bearer error="invalid_dpop_proof""#, nil),
            (#"Bearer error="use_dpop_nonce", DPoP error="invalid_token""#, .token),
            (#"DPoP algs="ES256", Bearer error="invalid_token""#, .token),
            (#"Bearer error="invalid_token", DPoP error="use_dpop_nonce""#, .nonce),
        ]
        for (field, expected) in cases {
            let fields: HTTPFields = [.wwwAuthenticate: field]
            #expect(ResourceRefusal(HTTPResponse(status: .unauthorized, headerFields: fields)) == expected, "\(field)")
            #expect(ResourceRefusal(HTTPResponse(status: .forbidden, headerFields: fields)) == nil)
        }
    }
}
