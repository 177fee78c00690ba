/// Asking a person for a PIN or a passphrase until it is right, but not for ever.
package enum SecretTries {
    /// How often a person is asked for one secret.
    package static let limit = 3

    /// Asks and uses the answer, up to ``limit`` times, until `use` does not find it wrong.
    ///
    /// - Parameters:
    ///   - ask: gives the next secret to try; it gets the error of the try before, or `nil` at the first.
    ///   - use: tries a secret; it throws ``KeyProviderError`` with code `wrongSecret` when that is not the right one.
    /// - Throws: what `ask` and `use` throw. When nobody answers after a wrong secret, or the tries are used up, that
    ///   is the `wrongSecret` of the last one: it says more than `userAbsent`.
    /// - Returns: what `use` returned.
    package static func run<Answer, Result>(
        asking ask: (KeyProviderError?) async throws -> Answer, using use: (Answer) async throws -> Result
    ) async throws -> Result {
        var wrong: KeyProviderError?
        for tried in 1...limit {
            let answer: Answer
            do {
                answer = try await ask(wrong)
            } catch let error as KeyProviderError where error.code == .userAbsent {
                throw wrong ?? error
            }
            do {
                return try await use(answer)
            } catch let error as KeyProviderError where error.code == .wrongSecret {
                guard tried < limit else { throw error }
                wrong = error
            }
        }
        throw wrong ?? KeyProviderError(.wrongSecret, "The secret is wrong.")
    }
}
