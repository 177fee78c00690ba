import AssentCore
import AssentEvidence
import AssentJOSE
import AssentSigningProtocol
import Testing

@Suite("A relying party's own judgement of evidence")
struct EvidenceVerifierTests {
    @Test("A good bundle is accepted, with the answer and the texts that were shown")
    func accepted() throws {
        let vectors = try Vectors.load()
        let key = try vectors.publicKey("identity")
        let bytes = try EvidenceTests.vectorBundle().encoded()
        for verifier in [
            try EvidenceVerifier(trusting: JWK(key.json)),
            try EvidenceVerifier(trustingThumbprint: key.thumbprint.text),
        ] {
            let judgement = try verifier.judge(bytes)
            #expect(judgement.isAccepted && judgement.contradicted.isEmpty)
            let decision = try #require(judgement.decisions.first)
            #expect(decision.status == "accept" && decision.label == "Approve")
            #expect(decision.texts.contains("200.00 EUR") && !decision.texts.contains(""))
            #expect(decision.key == (try vectors.publicKey("sign").thumbprint.text))
            #expect(!judgement.established.isEmpty && !judgement.attested.isEmpty)
            #expect(judgement.notEstablished.count == EvidenceGap.always.count)
        }
    }

    @Test("A bundle of another root, a changed one, and what is not a bundle are told apart")
    func refused() throws {
        let vectors = try Vectors.load()
        let bundle = try EvidenceTests.vectorBundle()
        let other = try EvidenceVerifier(trustingThumbprint: vectors.publicKey("device").thumbprint.text)
        let judgement = try other.judge(bundle.encoded())
        #expect(!judgement.isAccepted && judgement.decisions.isEmpty && !judgement.contradicted.isEmpty)
        #expect(throws: EvidenceError(.notABundle, "")) { try other.judge(Array("{}".utf8)) }
        #expect(throws: EvidenceError(.notABundle, "")) {
            try other.judge([UInt8](repeating: 0x20, count: EvidenceVerifier.sizeLimit + 1))
        }
        #expect(throws: EvidenceError(.notAKey, "")) { try EvidenceVerifier(trustingThumbprint: "x") }
        let other384 = try JWK(publicKeyInfo: SoftwareSigningKey.generate(.es384).publicKeyInfo)
        #expect(throws: EvidenceError(.notAKey, "")) { try EvidenceVerifier(trusting: other384) }
    }
}
