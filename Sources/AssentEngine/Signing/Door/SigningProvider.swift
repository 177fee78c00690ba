/// A realm's transaction signing: the calls of devices, users and relying parties, decided. It speaks no HTTP.
package struct SigningProvider: SigningPart {
    package let realm: SigningRealm

    /// Transaction signing on a context's database. Without a notifier it is only logged what happens to users' devices
    /// and what waits for them.
    package init(_ context: EngineContext, settings: SigningSettings, notifier: (any Notifier)? = nil) {
        realm = SigningRealm(context, settings: settings, notifier: notifier)
    }

    package var logins: SigningLogins { SigningLogins(realm: realm) }

    package var parties: SigningParties { SigningParties(realm: realm) }

    package var evidence: SigningEvidence { SigningEvidence(realm: realm) }

    package var administration: SigningKeyAdministration { SigningKeyAdministration(realm: realm) }

    /// What journeys ask users to sign.
    var questions: SigningQuestions { SigningQuestions(realm: realm) }
}
