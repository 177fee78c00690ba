import AssentCore
import Testing

@Suite("Asking for a secret")
struct SecretTriesTests {
    private let wrong = KeyProviderError(.wrongSecret, "Wrong.", attemptsLeft: 2)

    @Test("The right answer is used once, and the one who asks learns of the wrong ones before it")
    func retry() async throws {
        var seen: [Int?] = []
        let result = try await SecretTries.run(
            asking: { error in
                seen.append(error?.attemptsLeft)
                return seen.count == 2 ? "right" : "wrong"
            },
            using: { answer in
                guard answer == "right" else { throw wrong }
                return "open"
            })
        #expect(result == "open" && seen == [nil, 2])
    }

    @Test("After three wrong answers nobody is asked again")
    func limit() async throws {
        var asked = 0
        await #expect(throws: wrong) {
            try await SecretTries.run(asking: { _ in asked += 1 }, using: { _ in throw wrong })
        }
        #expect(asked == 3)
    }

    @Test("Nobody there after a wrong answer is reported as the wrong answer, and before one as nobody there")
    func absent() async throws {
        let nobody = KeyProviderError(.userAbsent, "Nobody.")
        await #expect(throws: wrong) {
            try await SecretTries.run(
                asking: { error in if error != nil { throw nobody } }, using: { _ in throw wrong })
        }
        await #expect(throws: nobody) {
            try await SecretTries.run(asking: { _ in throw nobody }, using: { (_: Int) in })
        }
    }

    @Test("Every other failure ends it at once")
    func others() async throws {
        var asked = 0
        await #expect(throws: KeyProviderError(.lockedOut, "")) {
            try await SecretTries.run(
                asking: { _ in asked += 1 }, using: { _ in throw KeyProviderError(.lockedOut, "Locked.") })
        }
        #expect(asked == 1)
    }
}
