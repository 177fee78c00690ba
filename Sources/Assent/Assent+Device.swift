public import AssentCore
import AssentJourney
public import AssentSigning
import AssentTokens

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
        private let user: UserSession

        init(_ made: SigningDevice?, user: UserSession) {
            self.made = made
            self.user = user
        }

        /// What sends calls with the session of the app's user.
        struct UserSession: Sendable {
            /// The issuer of the realm in which the user signs in.
            let issuer: String
            let transport: any HTTPTransport

            /// - Throws: `WireError` when the server's URL cannot be used.
            init(_ journeys: JourneyConfiguration, _ user: CurrentUser, over transport: any HTTPTransport) throws {
                issuer = "\(journeys.server)/signing/\(journeys.realm.path)"
                self.transport = AuthenticatingTransport(
                    user, resources: [try Origin(journeys.server): .session], over: transport)
            }
        }

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

        /// Enrols this installation for the user who is signed in, who chooses a password and types nothing else: the
        /// app makes the invite with the user's own session and sends the digits that it has computed.
        ///
        /// ```swift
        /// let container = try await assent.device.enrol { request in
        ///     print("at least \(request.rules.minLength) characters")
        ///     return try await choose()
        /// }
        /// print(container.userName, "is remembered here")
        /// ```
        ///
        /// No person compares the digits, so this rests on the session, which must be fresh, and on the pins. If it
        /// fails on the way, call it again: it goes on where it was. A container that the user has here already stays.
        ///
        /// - Parameters:
        ///   - name: what the container is to be called, 1 to 128 characters.
        ///   - pushID: where push messages go.
        ///   - password: asks the user for each password that the server's policy wants.
        /// - Returns: the container, which is active.
        /// - Throws: `TokenError` with code `signInNeeded` when there is no session. `SigningError` with code
        ///   `freshAuthenticationRequired` when the sign-in is too long ago; `digitsWrong` when somebody is between
        ///   the app and the server, and then nothing is enrolled; what `password` throws.
        @discardableResult
        public func enrol(
            name: String? = nil, pushID: String? = nil, password: @escaping SigningPasswordPrompt
        ) async throws -> SigningContainer {
            try await signing.enrol(
                at: user.issuer, with: user.transport, name: name, pushID: pushID, password: password)
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
