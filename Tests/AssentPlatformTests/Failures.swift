import AssentCore
import Testing

/// The error of a key provider that `body` throws; anything else fails the test.
func failure(
    _ location: SourceLocation = #_sourceLocation, of body: () async throws -> Void
) async -> KeyProviderError? {
    do {
        try await body()
        return nil
    } catch let error as KeyProviderError {
        #expect(error.detail.count > 20, "\(error)", sourceLocation: location)
        return error
    } catch {
        Issue.record("\(error)", sourceLocation: location)
        return nil
    }
}

/// Answers with one PIN after the other, and keeps what it was asked.
final class PINs: UserPresence {
    private let state: Locked<(answers: [Secret], requests: [PresenceRequest])>

    init(_ answers: String...) { state = Locked((answers.map { Secret($0) }, [])) }

    var requests: [PresenceRequest] { state.withLock { $0.requests } }

    func secret(for request: PresenceRequest) async throws -> Secret {
        let answer = state.withLock { state in
            state.requests.append(request)
            return state.answers.isEmpty ? nil : state.answers.removeFirst()
        }
        guard let answer else { throw KeyProviderError(.userAbsent, "The user has pressed Cancel in this test.") }
        return answer
    }
}
