import AssentCore
import AssentSigningProtocol
import Crypto
import TestSupport
import Testing

@Suite("Transaction signing: the oblivious function")
struct ObliviousTests {
    /// RFC 9497 A.4.2.
    private let key = "051646b9e6e7a71ae27c1e1d0b87b4381db6d3595eeeb1adb41579adbf992f4278f9016eafc944edaa2b43183581779d"
    private let publicKey =
        "031d689686c611991b55f1a1d8f4305ccd6cb719446f660a30db61b7aa87b46acf59b7c0d4a9077b3da21c25dd482229a0"

    /// The order of the group of P-384.
    private let order =
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"
    /// The prime of P-384's field.
    private let prime =
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff"
    private let zero = String(repeating: "0", count: 96)
    private let one = String(repeating: "0", count: 95) + "1"

    private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

    private func vectorKey() throws -> ObliviousKey { try ObliviousKey(secret: Secret(bytes: bytes(key))) }

    // MARK: Vectors

    struct Vector: Sendable {
        let input: String
        let blinded: String
        let evaluated: String
        let output: String
    }

    static let vectors = [
        Vector(
            input: "00",
            blinded:
                "02d338c05cbecb82de13d6700f09cb61190543a7b7e2c6cd4fca56887e564ea82653b27fdad383995ea6d02cf26d0e24d9",
            evaluated:
                "02a7bba589b3e8672aa19e8fd258de2e6aae20101c8d761246de97a6b5ee9cf105febce4327a326255a3c604f63f600ef6",
            output: "3333230886b562ffb8329a8be08fea8025755372817ec969d114d1203d026b4a622beab60220bf19078bca35a529b35c"),
        Vector(
            input: "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
            blinded:
                "02f27469e059886f221be5f2cca03d2bdc61e55221721c3b3e56fc012e36d31ae5f8dc058109591556a6dbd3a8c69c433b",
            evaluated:
                "03f16f903947035400e96b7f531a38d4a07ac89a80f89d86a1bf089c525a92c7f4733729ca30c56ce78b1ab4f7d92db8b4",
            output: "b91c70ea3d4d62ba922eb8a7d03809a441e1c3c7af915cbc2226f485213e895942cd0f8580e6d99f82221e66c40d274f"),
    ]

    @Test("Public key, evaluated elements and outputs of RFC 9497 A.4.2", arguments: vectors)
    func rfc(vector: Vector) throws {
        let key = try vectorKey()
        #expect(Hex.encode(key.publicKey.bytes) == publicKey)
        let evaluation = try key.evaluate(ObliviousElement(bytes(vector.blinded)))
        #expect(Hex.encode(evaluation.evaluated) == vector.evaluated)
        let input = try Secret(bytes: bytes(vector.input))
        #expect(try Hex.encode(key.output(for: input).revealBytes()) == vector.output)
        // The blind cannot be chosen: with another one the output is the same.
        let blinded = try ObliviousInput(input)
        let own = try key.evaluate(blinded.element)
        let output = try blinded.output(by: key.publicKey, evaluated: own.evaluated, proof: own.proof)
        #expect(Hex.encode(output.revealBytes()) == vector.output)
    }

    @Test("The page's vector: the input, its evaluation, and what seals the key")
    func page() throws {
        let vectors = try Vectors.load()
        let message = try vectors.message("eval.enrol", as: Evaluation.self).content
        let key = try ObliviousKey(secret: Secret(bytes: vectors.bytes("OPRF private key k")))
        #expect(key.publicKey.bytes == message.publicKey)
        let evaluation = try key.evaluate(ObliviousElement(vectors.bytes("blinded element")))
        #expect(evaluation.evaluated == message.evaluated)
        let input = try Secret(bytes: vectors.bytes("OPRF input"))
        #expect(try key.output(for: input).revealBytes() == vectors.bytes("o = OPRF output"))
    }

    // MARK: Both sides

    @Test("Every evaluation of one input has another element and the same output; another key, another output")
    func exchange() throws {
        let (key, other) = (try ObliviousKey(), try ObliviousKey())
        let input = Secret("271828")
        var elements: Set<ObliviousElement> = []
        for _ in 0..<5 {
            let blinded = try ObliviousInput(input)
            elements.insert(blinded.element)
            let evaluation = try key.evaluate(blinded.element)
            #expect(
                try blinded.output(by: key.publicKey, evaluated: evaluation.evaluated, proof: evaluation.proof)
                    == key.output(for: input))
        }
        #expect(elements.count == 5)
        #expect(try key.output(for: input) != other.output(for: input))
        #expect(try key.output(for: input) != key.output(for: Secret("271829")))
        #expect(try ObliviousKey(secret: key.secret).publicKey == key.publicKey)
    }

    @Test("An evaluation by another key, or of another element, or with one flipped bit is refused")
    func forged() throws {
        let (key, other) = (try ObliviousKey(), try ObliviousKey())
        let blinded = try ObliviousInput(Secret("271828"))
        let good = try key.evaluate(blinded.element)
        let second = try key.evaluate(ObliviousInput(Secret("271828")).element)
        let foreign = try other.evaluate(blinded.element)
        for wrong in [second, foreign] {
            refused { try blinded.output(by: key.publicKey, evaluated: wrong.evaluated, proof: wrong.proof) }
            refused { try blinded.output(by: key.publicKey, evaluated: good.evaluated, proof: wrong.proof) }
            refused { try blinded.output(by: key.publicKey, evaluated: wrong.evaluated, proof: good.proof) }
        }
        for bit in stride(from: 0, to: 145 * 8, by: 7) {
            var all = good.evaluated + good.proof
            all[bit / 8] ^= 1 << (bit % 8)
            refused {
                try blinded.output(by: key.publicKey, evaluated: Array(all.prefix(49)), proof: Array(all.suffix(96)))
            }
        }
        #expect(throws: Never.self) {
            try blinded.output(by: key.publicKey, evaluated: good.evaluated, proof: good.proof)
        }
    }

    // MARK: Bad input

    private func refused(
        _ code: SigningProtocolError.Code? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> some Any
    ) {
        let error = #expect(throws: SigningProtocolError.self, sourceLocation: sourceLocation) { _ = try body() }
        let expected = code.map { [$0] } ?? [.invalidElement, .invalidProof]
        #expect(error.map { expected.contains($0.code) } ?? false, sourceLocation: sourceLocation)
    }

    @Test("What is no element is refused: other lengths, other encodings, infinity, x not below p, off the curve")
    func elements() throws {
        let good = try ObliviousKey().publicKey.bytes
        let full = try Array(P384.KeyAgreement.PublicKey(compressedRepresentation: good).x963Representation)
        let prime = try bytes(prime)
        var wrong: [[UInt8]] = [
            [], [0], [2], Array(good.dropLast()), good + [0], [UInt8](repeating: 0, count: 49), full,
            [full[96] & 1 == 0 ? 6 : 7] + full.dropFirst(), [2] + prime,
            [2] + [UInt8](repeating: 255, count: 48),
        ]
        for first: UInt8 in [0, 1, 4, 5, 6, 7, 255] { wrong.append([first] + good.dropFirst()) }
        for bytes in wrong { refused(.invalidElement) { try ObliviousElement(bytes) } }
    }

    @Test("x = p + small is refused although x = small may be a point")
    func reduced() throws {
        // p ends with ffffffff, so p + 1 + i is p with its last 32 bits turned over, and one more before them.
        var top = try bytes(prime)
        top.replaceSubrange(44..<48, with: [0, 0, 0, 0])
        top[43] = 1
        var points = 0
        for i: UInt8 in 0..<32 {
            top[47] = i
            refused(.invalidElement) { try ObliviousElement([2] + top) }
            let small = [UInt8](repeating: 0, count: 47) + [i + 1]
            if (try? ObliviousElement([2] + small)) != nil { points += 1 }
        }
        // About half of all x have points.
        #expect((6..<26).contains(points))
    }

    @Test("What is no private key is refused: 0, the order and more, other lengths")
    func keys() throws {
        let wrong: [[UInt8]] = try [
            [], [1], bytes(zero), bytes(order), bytes(String(repeating: "f", count: 96)), Array(bytes(one).dropFirst()),
            bytes(one) + [0],
        ]
        for bytes in wrong { refused(.invalidElement) { try ObliviousKey(secret: Secret(bytes: bytes)) } }
        #expect(throws: Never.self) { try ObliviousKey(secret: Secret(bytes: bytes(one))) }
    }

    @Test("A proof with scalars that are 0, the order or more, or of another length is refused")
    func scalars() throws {
        let key = try vectorKey()
        let blinded = try ObliviousInput(Secret("271828"))
        let good = try key.evaluate(blinded.element)
        let (c, s) = (Hex.encode(good.proof.prefix(48)), Hex.encode(good.proof.suffix(48)))
        let full = String(repeating: "f", count: 96)
        for proof in [
            "", zero, c, zero + zero, c + zero, zero + s, order + s, c + order, order + order, full + s, c + full,
            c + s + "00", "00" + c + s,
        ] {
            refused(.invalidProof) {
                try blinded.output(by: key.publicKey, evaluated: good.evaluated, proof: bytes(proof))
            }
        }
    }

    @Test("Proofs whose sums are infinity are refused, and do not end the process")
    func infinity() throws {
        // With k = 1 the proof (c, -c) makes both sums infinity, with k = n - 1 the proof (c, c).
        let minusOne = try minus(bytes(one))
        for (k, c) in try [(bytes(one), bytes(key)), (bytes(one), bytes(one)), (minusOne, bytes(key))] {
            let key = try ObliviousKey(secret: Secret(bytes: k))
            let blinded = try ObliviousInput(Secret("271828"))
            let good = try key.evaluate(blinded.element)
            let s = k == minusOne ? c : try minus(c)
            refused(.invalidProof) { try blinded.output(by: key.publicKey, evaluated: good.evaluated, proof: c + s) }
            // Only the second sum, under another public key; only the first one, of another element.
            let other = try ObliviousKey().publicKey
            refused(.invalidProof) { try blinded.output(by: other, evaluated: good.evaluated, proof: c + s) }
            refused(.invalidProof) { try blinded.output(by: key.publicKey, evaluated: other.bytes, proof: c + s) }
        }
    }

    /// The order less this number.
    private func minus(_ number: [UInt8]) throws -> [UInt8] {
        var (result, borrow) = (try bytes(order), 0)
        for index in result.indices.reversed() {
            let digit = Int(result[index]) - Int(number[index]) - borrow
            borrow = digit < 0 ? 1 : 0
            result[index] = UInt8(digit & 255)
        }
        return result
    }

    // MARK: The second implementation

    @Test("Python evaluates what we blind, and we what it blinds", .enabled(if: PythonPeer.mustRun))
    func python() throws {
        let (key, input) = (try vectorKey(), Secret("271828"))
        let blinded = try ObliviousInput(input)
        let answer = try PythonPeer.run(
            """
            import sys
            k, element = int(sys.argv[1], 16), oprf.parse_element(bytes.fromhex(sys.argv[2]))
            evaluated, proof = oprf.evaluate(k, element)
            scalar, own = oprf.blind(b"271828", 12345)
            print(oprf.serialize(evaluated).hex(), proof.hex(), oprf.serialize(own).hex())
            """, [self.key, Hex.encode(blinded.element.bytes)]
        ).split(separator: " ")
        try #require(answer.count == 3)
        let output = try blinded.output(
            by: key.publicKey, evaluated: bytes(String(answer[0])), proof: bytes(String(answer[1])))
        #expect(try output == key.output(for: input))
        let evaluation = try key.evaluate(ObliviousElement(bytes(String(answer[2]))))
        let finalized = try PythonPeer.run(
            """
            import sys
            public, evaluated, proof = map(bytes.fromhex, sys.argv[1:])
            scalar, own = oprf.blind(b"271828", 12345)
            evaluated = oprf.parse_element(evaluated)
            oprf.check_proof(oprf.parse_element(public), own, evaluated, proof)
            print(oprf.finalize(b"271828", scalar, evaluated).hex())
            """, [publicKey, Hex.encode(evaluation.evaluated), Hex.encode(evaluation.proof)])
        #expect(finalized == Hex.encode(output.revealBytes()))
    }
}

extension ObliviousKey {
    /// What a client gets for an input.
    fileprivate func output(for input: Secret) throws -> Secret {
        let blinded = try ObliviousInput(input)
        let evaluation = try evaluate(blinded.element)
        return try blinded.output(by: publicKey, evaluated: evaluation.evaluated, proof: evaluation.proof)
    }
}
