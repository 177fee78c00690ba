import AssentCore
import AssentJOSE
import Crypto
import Foundation
import TestSupport
import Testing

@testable import AssentTrust

/// `Tests/Payload/trust.py`, made from the page alone, as a second opinion.
@Suite("Trust files against the implementation in Python", .enabled(if: PythonPeer.mustRun))
struct PythonTrustTests {
    private let samples: TrustSamples

    init() throws { samples = try TrustSamples() }

    private func answers(_ command: String, _ asked: [JSONValue]) throws -> [JSONValue] {
        let input = asked.flatMap { $0.serializedBytes() + [UInt8(ascii: "\n")] }
        let lines = try PythonPeer.run(script: "Payload/trust.py", [command], input: input).split(separator: "\n")
        try #require(lines.count == asked.count)
        return try lines.map { try JSONValue.parse(Array($0.utf8)) }
    }

    /// The version at the end of a chain; `nil` when it is refused.
    private func judged(_ texts: [String]) -> Int? {
        guard let first = texts.first, let shipped = try? TrustFile(shipped: first) else { return nil }
        var chain = TrustChain(from: shipped)
        for text in texts.dropFirst() {
            guard (try? chain.append(text)) != nil else { return nil }
        }
        return chain.newest.version
    }

    @Test("It takes and refuses the same chains as we do")
    func chains() async throws {
        let files = try await samples.chain(1...4)
        let first = files[1] ?? ""
        let second = files[2] ?? ""
        var chains = [[first], [first, second], [first, second, files[3] ?? "", files[4] ?? ""]]
        chains += [
            [first, files[3] ?? ""], [second, first], [first, first], [second, second], [String(second.dropLast(2))],
        ]
        let stranger = try await samples.sign(try samples.members(2), by: samples.stranger)
        chains += [[first, stranger], [first, second + "."], [first, second.replacing(".", with: "")]]
        let time = TrustSamples.time
        let end = time + 9
        let changes: [[String: JSONValue?]] = [
            ["exp": .integer(end)], ["exp": .integer(time)], ["more": 1], ["development": true], ["development": false],
            ["aud": "a/b"], ["aud": "other/linux/production"], ["iat": .integer(time)], ["v": 2], ["v": true],
            ["version": 0], ["source": []], ["source": ["http://a.example"]], ["issuer": "https://a.example/?q"],
            ["controls": ["debugger": "off", "rooted": "off", "preload": "no"]], ["identity": JSONValue?.none],
            ["hosts": [TrustSamples.host([(1, end), (1, end)])]], ["hosts": [TrustSamples.host([(1, end)])]],
            ["hosts": [TrustSamples.host("a.example:8443", [(1, end), (2, end)], sends: ["implicit", "device"])]],
            ["hosts": [TrustSamples.host("A.example", [(1, end), (2, end)])]],
            ["hosts": [TrustSamples.host([(1, end), (2, end)], sends: ["nobody"])]],
            ["keys": try TrustSamples.json([samples.first])], ["config": []],
        ]
        for change in changes { chains.append([first, try await samples.file(2, change)]) }
        let asked = chains.map { JSONValue.array($0.map(JSONValue.string)) }
        var taken = 0
        for (index, answer) in try answers("chain", asked).enumerated() {
            let version = judged(chains[index])
            #expect(answer["version"]?.integer.map { Int($0) } == version, "\(index): \(answer.serialized())")
            taken += version == nil ? 0 : 1
        }
        #expect(taken == 7, "of each kind there are some")
    }

    @Test("We take what it has signed, and not what it has signed with another key")
    func signed() async throws {
        let scalar = [UInt8](repeating: 7, count: 32)
        let theirs = try SoftwareSigningKey(
            algorithm: .es256,
            privateKey: Secret(bytes: P256.Signing.PrivateKey(rawRepresentation: scalar).derRepresentation))
        let asked: JSONValue = ["key": .string(Hex.encode(scalar)), "content": .object(try samples.members(2))]
        let text = try #require(try answers("sign", [asked]).first?["file"]?.string)
        let known = try TrustFile(
            shipped: try await samples.sign(try samples.members(1, keys: [samples.first, theirs])))
        #expect(try known.successor(text).version == 2)
        let unknown = try TrustFile(shipped: try await samples.file(1))
        #expect(throws: TrustFileError(.unknownKey, "")) { try unknown.successor(text) }
    }
}
