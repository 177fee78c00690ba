import AssentCore
import Testing

@testable import AssentEngine

@Suite("The master key")
struct MasterKeyTests {
    private let key = Secret(bytes: Array(0..<32))
    private let plaintext = Secret("JBSWY3DPEHPK3PXP")

    @Test("What is sealed opens again for the same purpose and place")
    func roundTrip() throws {
        let master = try MasterKey(key)
        for purpose in [MasterKey.Purpose.oneTimePasswordSeed, .serverKey, .journeyState, .refreshSuccessor] {
            let sealed = try master.seal(plaintext, for: purpose, context: "row-1")
            #expect(sealed.count == plaintext.count + 28)
            #expect(try MasterKey(key).open(sealed, for: purpose, context: "row-1") == plaintext)
        }
        let empty = try master.seal(Secret(""), for: .serverKey, context: "")
        #expect(try master.open(empty, for: .serverKey, context: "").isEmpty)
    }

    @Test("The same value is never sealed to the same bytes")
    func fresh() throws {
        let master = try MasterKey(key)
        let sealed = try (0..<50).map { _ in try master.seal(plaintext, for: .serverKey, context: "a") }
        #expect(Set(sealed).count == 50)
    }

    @Test("Another key, purpose or place does not open it")
    func wrongUse() throws {
        let sealed = try MasterKey(key).seal(plaintext, for: .oneTimePasswordSeed, context: "row-1")
        let other = try MasterKey(Secret(bytes: Array(1..<33)))
        #expect(throws: EngineError.self) { try other.open(sealed, for: .oneTimePasswordSeed, context: "row-1") }
        #expect(throws: EngineError.self) { try MasterKey(key).open(sealed, for: .serverKey, context: "row-1") }
        for context in ["row-2", "", "row-1 "] {
            #expect(throws: EngineError.self) {
                try MasterKey(key).open(sealed, for: .oneTimePasswordSeed, context: context)
            }
        }
    }

    @Test("Any bit that changes, and any byte that goes or comes, is noticed")
    func tampering() throws {
        let master = try MasterKey(key)
        let sealed = try master.seal(plaintext, for: .serverKey, context: "a")
        for index in sealed.indices {
            for bit in 0..<8 {
                var changed = sealed
                changed[index] ^= 1 << bit
                #expect(throws: EngineError.self) { try master.open(changed, for: .serverKey, context: "a") }
            }
        }
        for changed in [Array(sealed.dropLast()), Array(sealed.dropFirst()), sealed + [0], [], [1, 2, 3]] {
            #expect(throws: EngineError.self) { try master.open(changed, for: .serverKey, context: "a") }
        }
    }

    @Test("Only 32 bytes are a master key", arguments: [0, 16, 31, 33, 64])
    func length(count: Int) {
        #expect(throws: EngineError.self) { try MasterKey(Secret(bytes: [UInt8](repeating: 1, count: count))) }
    }

    @Test("Neither key nor value is in an error or a description")
    func descriptions() throws {
        let master = try MasterKey(Secret("0123456789abcdef0123456789abcdef"))
        var shown = "\(master)"
        dump(master, to: &shown)
        let error = #expect(throws: EngineError.self) { try master.open([1], for: .serverKey, context: "a") }
        shown += error.map { "\($0)" } ?? ""
        #expect(!shown.contains("0123456789"))
    }
}
