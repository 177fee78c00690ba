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

    @Test("Each origin has its newest nonce, and the memory is bounded")
    func memory() throws {
        let memory = NonceMemory()
        let origins = try (0...NonceMemory.originLimit).map { try Origin("https://h\($0).example") }
        memory.take(from: [.dpopNonce: "old"], of: origins[1])
        for (index, origin) in origins.enumerated() { memory.take(from: [.dpopNonce: "n\(index)"], of: origin) }
        #expect(memory.newest(for: origins[0]) == nil)
        for index in 1...NonceMemory.originLimit { #expect(memory.newest(for: origins[index]) == "n\(index)") }
        #expect(memory.newest(for: try Origin("https://h1.example:8443")) == nil)
        #expect(memory.take(from: [:], of: origins[1]) == nil && memory.newest(for: origins[1]) == "n1")
    }

    @Test("Challenges are read whatever the case of the scheme, and wherever they stand")
    func challenges() {
        let cases: [(String, ResourceRefusal?)] = [
            (#"DPoP error="use_dpop_nonce""#, .nonce), (#"dpop algs="ES256", error=use_dpop_nonce"#, .nonce),
            (#"Bearer, DPoP error="use_dpop_nonce""#, .nonce), (#"DPOP error="invalid_dpop_proof""#, .proof),
            (#"DPoP error="invalid_token""#, .token), (#"bearer error="invalid_token""#, .token),
            (#"DPoP error="insufficient_scope""#, nil), (#"Basic error="use_dpop_nonce""#, nil), ("DPoP", nil),
            (#"DPoP error="use_dpop_nonce"#, nil),
        ]
        for (field, expected) in cases {
            let fields: HTTPFields = [.wwwAuthenticate: field]
            #expect(ResourceRefusal(HTTPResponse(status: .unauthorized, headerFields: fields)) == expected, "\(field)")
            #expect(ResourceRefusal(HTTPResponse(status: .forbidden, headerFields: fields)) == nil)
        }
    }
}
