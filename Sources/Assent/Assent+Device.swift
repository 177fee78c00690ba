public import AssentCore
public import AssentSigning

extension Assent {
    /// This app as a device that its users enrol, which shows transactions and signs the answers.
    ///
    /// ```swift
    /// let enrolment = try await assent.device.enrol(SigningInvite(scanned: qrCode), name: "Ana's laptop")
    /// await screen.show(enrolment)  // the user types its digits into the page that shows the QR code
    /// for try await transaction in try await assent.device.transactions() {
    ///     let answer = await screen.ask(transaction.displayed, transaction.allowedStatuses)
    ///     try await transaction.setStatus(answer.status, number: answer.number)
    /// }
    /// ```
    ///
    /// Its keys are made by `Configuration.deviceKeys`, what it allows is in `Configuration.device`, and what else it
    /// keeps is in the vault. It needs no session: the device's own keys prove its calls, and ``signOut()`` leaves its
    /// containers alone.
    public struct Device: Sendable {
        private let made: SigningDevice?

        init(_ made: SigningDevice?) { self.made = made }

        /// The device with all that it can do.
        ///
        /// - Throws: `SigningError` with code `unsupportedOperation` when the configuration has no `deviceKeys`.
        public var signing: SigningDevice {
            get throws(SigningError) {
                guard let made else {
                    throw SigningError(
                        .unsupportedOperation, "The app has not said what holds the device's keys.",
                        suggestion: "Set deviceKeys in the configuration.")
                }
                return made
            }
        }

        /// Enrols this device: makes keys and has the server accept them. Then the user types the digits of the result
        /// into the page that made the invite.
        ///
        /// - Parameters:
        ///   - invite: what was scanned or typed.
        ///   - name: what the container is to be called, 1 to 128 characters.
        ///   - pushID: where push messages go.
        ///   - password: asks the user for each password that the server's policy wants. Without it such an enrolment
        ///     stops with code `passwordRequired`.
        /// - Returns: the digits, and the names that are shown with them.
        /// - Throws: `SigningError`, with code `untrustedIssuer` for an issuer that `Configuration.device` does not
        ///   name.
        public func enrol(
            _ invite: SigningInvite, name: String? = nil, pushID: String? = nil, password: SigningPasswordPrompt? = nil
        ) async throws -> SigningEnrolment {
            try await signing.enrol(invite, name: name, pushID: pushID, password: password)
        }

        /// The containers of this device that fit a filter, the oldest first.
        ///
        /// - Throws: `SigningError`.
        public func containers(matching filter: ContainerFilter = ContainerFilter()) async throws -> [SigningContainer]
        {
            try await signing.containers(matching: filter)
        }

        /// Open transactions of a user's container as they come, each once. While the user has not typed the digits of
        /// the enrolment, the sequence waits for that first.
        ///
        /// - Parameters:
        ///   - user: the user's id or name; without one the only container's.
        ///   - password: the password `session`, if the container has one. It is kept as long as the sequence is.
        /// - Returns: the transactions.
        /// - Throws: `SigningError` with code `invalidContainer` when the device is not enrolled, `inexplicitContainer`
        ///   with the users when several containers fit.
        public func transactions(user: String? = nil, password: Secret? = nil) async throws -> SigningTransactions {
            try await signing.container(of: user).transactions(password: password)
        }

        /// Reads a transaction's id, of a push message or a QR code. Nothing is sent.
        ///
        /// - Throws: `SigningError`.
        public func retrieveTransactionInfo(
            _ id: String, user: String? = nil
        ) async throws -> SigningTransactionInfo {
            try await signing.retrieveTransactionInfo(id, user: user)
        }
    }
}
